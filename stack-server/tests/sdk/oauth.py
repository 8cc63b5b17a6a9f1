"""Does what an application does with a stock OAuth2 library: authlib.

    python3 oauth.py http://127.0.0.1:8080 CLIENT SECRET

Discovery, client credentials by header and by form, introspection, revocation, and a token that verifies with the key
set, by two libraries (authlib and joserfc).
"""
import sys

import requests
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata
from authlib.oidc.discovery import OpenIDProviderMetadata
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import KeySet

base, client_id, secret = sys.argv[1:4]
issuer = f"{base}/api/auth"
document = requests.get(f"{issuer}/.well-known/openid-configuration").json()
assert document["issuer"] == issuer, document

metadata = OpenIDProviderMetadata(document)
for check in ("validate_jwks_uri", "validate_subject_types_supported", "validate_response_types_supported",
              "validate_grant_types_supported", "validate_id_token_signing_alg_values_supported",
              "validate_token_endpoint_auth_methods_supported", "validate_scopes_supported",
              "validate_claims_supported", "validate_request_parameter_supported"):
    # Issuer and endpoints over http are for loopback alone: the library refuses them elsewhere.
    if check != "validate_jwks_uri":
        getattr(metadata, check)()

keys = requests.get(document["jwks_uri"]).json()
for method in ("client_secret_basic", "client_secret_post"):
    session = OAuth2Session(client_id, secret, scope="openid ledger:read nosuch", token_endpoint_auth_method=method)
    token = session.fetch_token(document["token_endpoint"], grant_type="client_credentials")
    assert token["token_type"] == "Bearer" and token["expires_in"] > 3000, token
    claims = joserfc_jwt.decode(token["access_token"], KeySet.import_key_set(keys)).claims
    assert claims["iss"] == issuer and claims["aud"] == [client_id] and claims["scope"] == "openid ledger:read", claims
    answer = session.introspect_token(document["introspection_endpoint"], token=token["access_token"])
    assert answer.json()["active"] is True, answer.text
    assert session.revoke_token(document["revocation_endpoint"], token=token["access_token"]).status_code == 200
    answer = session.introspect_token(document["introspection_endpoint"], token=token["access_token"])
    assert answer.json() == {"active": False}, answer.text

from authlib.jose import JsonWebKey, jwt
session = OAuth2Session(client_id, secret)
token = session.fetch_token(document["token_endpoint"], grant_type="client_credentials")
claims = jwt.decode(token["access_token"], JsonWebKey.import_key_set(keys), claims_options={"iss": {"value": issuer}})
claims.validate()
try:
    OAuth2Session(client_id, "wrong").fetch_token(document["token_endpoint"], grant_type="client_credentials")
except Exception as error:
    assert "invalid_client" in str(error), error
else:
    raise AssertionError("a wrong secret gets a token")
print("2 operations walked")
