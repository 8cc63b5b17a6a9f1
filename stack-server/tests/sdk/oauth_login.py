"""Logs somebody in with a stock OAuth2 library, authlib, at a real OpenID provider.

    python3 oauth_login.py http://127.0.0.1:8080 CLIENT SECRET

The authorization code flow with PKCE, the id token, the user, refresh by hand and by the library itself, and reuse.
"""
import re
import sys
from urllib.parse import urljoin

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.jwk import KeySet

base, client_id, secret = sys.argv[1:4]
issuer = f"{base}/api/auth"
redirect = "http://127.0.0.1:9/cb"
document = requests.get(f"{issuer}/.well-known/openid-configuration").json()
token_endpoint = document["token_endpoint"]
walked = []


def person(url):
    """Follows redirects, keeps cookies and fills in forms, until the application is reached."""
    browser, form = requests.Session(), None
    for _ in range(20):
        if url.startswith(redirect):
            return url
        answer = browser.post(url, form, allow_redirects=False) if form else browser.get(url, allow_redirects=False)
        form = None
        if answer.is_redirect:
            url = urljoin(url, answer.headers["location"])
            continue
        assert answer.status_code == 200, answer.text
        url = urljoin(url, re.search(r'action="([^"]+)"', answer.text)[1])
        is_login = 'name="login"' in answer.text
        form = {"prompt": "login", "login": "ann", "password": "any"} if is_login else {"prompt": "consent"}
    raise AssertionError("too many redirects")


def refused(call, word):
    try:
        call()
    except OAuthError as error:
        assert error.error == word, error
    else:
        raise AssertionError(f"not refused: {word}")


for method in ("client_secret_basic", "client_secret_post"):
    session = OAuth2Session(client_id, secret, scope="openid email offline_access ledger:read", redirect_uri=redirect,
                            code_challenge_method="S256", token_endpoint_auth_method=method, leeway=0)
    verifier, nonce = generate_token(48), generate_token()
    address, state = session.create_authorization_url(document["authorization_endpoint"], code_verifier=verifier, nonce=nonce)
    back = person(address)
    # A verifier of somebody else exchanges nothing.
    refused(lambda: session.fetch_token(token_endpoint, authorization_response=back, state=state,
                                        code_verifier=generate_token(48)), "invalid_grant")
    token = session.fetch_token(token_endpoint, authorization_response=back, state=state, code_verifier=verifier)
    keys = KeySet.import_key_set(requests.get(document["jwks_uri"]).json())
    claims = CodeIDToken(jwt.decode(token["id_token"], keys).claims, {}, {"iss": {"value": issuer}}, {"nonce": nonce, "client_id": client_id})
    claims.validate()
    # The library sends the access token along.
    user = session.get(document["userinfo_endpoint"]).json()
    assert user == {"sub": claims["sub"], "email": "ann@example.com", "email_verified": True}, user
    walked.append(f"a login by {method}")

    first = dict(token)
    second = session.refresh_token(token_endpoint, refresh_token=first["refresh_token"])
    assert second["refresh_token"] != first["refresh_token"]
    assert session.get(document["userinfo_endpoint"]).status_code == 200
    narrow = session.refresh_token(token_endpoint, refresh_token=second["refresh_token"], scope="ledger:read")
    assert jwt.decode(narrow["access_token"], keys).claims["scope"] == "ledger:read"
    refused(lambda: session.refresh_token(token_endpoint, refresh_token=narrow["refresh_token"], scope="ledger:write"), "invalid_scope")

    # The library refreshes by itself a token that has expired.
    itself = OAuth2Session(client_id, secret, token={**narrow, "expires_at": 1}, token_endpoint=token_endpoint, token_endpoint_auth_method=method)
    assert itself.get(document["userinfo_endpoint"]).status_code == 200
    assert itself.token["refresh_token"] != narrow["refresh_token"]
    # An older refresh token ends the family.
    refused(lambda: session.refresh_token(token_endpoint, refresh_token=first["refresh_token"]), "invalid_grant")
    refused(lambda: itself.refresh_token(token_endpoint, refresh_token=itself.token["refresh_token"]), "invalid_grant")
    refused(lambda: OAuth2Session(client_id, secret, redirect_uri=redirect).fetch_token(
        token_endpoint, authorization_response=back, state=state, code_verifier=verifier), "invalid_grant")
    walked.append(f"refresh by {method}")
print(f"{len(walked)} operations walked")
