//! The descriptions of the operations of the authorization server.

use crate::api::openapi::description::{Body, Content, Description, Parameter, TEXT, query};
use crate::api::operations::Auth;
use crate::http::error::Code;

use Code::{NotFound, Validation};
use Content::{Data, Empty, Json, Text};

const CLIENTS: &str = "Clients";
const SCOPES: &str = "Scopes";
const USERS: &str = "Users";
const SERVICE: &str = "Authorization";
const OAUTH: &str = "OAuth";
const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

const CLIENT: Body = Body { required: true, contents: &[(JSON, Json("ClientRequest"))] };
const SECRET: Body = Body { required: true, contents: &[(JSON, Json("SecretRequest"))] };
const SCOPE: Body = Body { required: true, contents: &[(JSON, Json("ScopeRequest"))] };

/// Returns the description of an operation.
pub(crate) fn describe(operation: Auth) -> Description {
    let new = Description::new;
    match operation {
        Auth::Info => new("getAuthServerInfo", SERVICE, "The release of the authorization server")
            .details(
                "Answers the release of the API that the authorization server implements. It needs no \
                 token.",
            )
            .answers(200, "The release", Json("AuthServerInfo")),
        Auth::Health => new("getAuthHealth", SERVICE, "Whether the store works")
            .details(
                "Answers `OK` while the store takes writes, and the reason with status 500 once it does \
                 not.",
            )
            .answers(200, "It does", Json("Health"))
            .answers(500, "It does not", Json("Health")),
        Auth::Ready => new("isAuthReady", SERVICE, "Whether the store works, for load balancers")
            .details(
                "Answers `OK` while the store takes writes, and the reason with status 503 once it does \
                 not, so that a load balancer turns elsewhere.",
            )
            .answers(200, "It does", Json("Health"))
            .answers(503, "It does not", Json("Health")),
        Auth::ListClients => new("listClients", CLIENTS, "Lists clients")
            .details(
                "Answers every client with its scopes and the last digits of its secrets, in one list \
                 without pages.",
            )
            .answers(200, "All of them", Json("ClientsResponse")),
        Auth::CreateClient => new("createClient", CLIENTS, "Creates a client")
            .details(
                "Stores a client under the given or a random id and answers it. It has no secret yet; an \
                 id that is taken is refused.",
            )
            .takes(CLIENT)
            .answers(201, "The client", Data("Client"))
            .refuses(&[Validation]),
        Auth::ReadClient => new("readClient", CLIENTS, "Reads a client")
            .details("Answers one client with its scopes and the last digits of its secrets.")
            .answers(200, "The client", Data("Client"))
            .refuses(&[NotFound]),
        Auth::UpdateClient => new("updateClient", CLIENTS, "Replaces all of a client but its secrets")
            .details(
                "Replaces name, redirect URIs, scopes and metadata of a client in one write. A member \
                 that is absent is emptied; secrets stay.",
            )
            .takes(CLIENT)
            .answers(200, "The client", Data("Client"))
            .refuses(&[Validation, NotFound]),
        Auth::DeleteClient => new("deleteClient", CLIENTS, "Removes a client with its secrets")
            .details(
                "Deletes the client and its secrets in one write. It answers the same if the client does \
                 not exist.",
            )
            .answers(204, "It is not there", Empty),
        Auth::CreateSecret => {
            new("createSecret", CLIENTS, "Adds a secret to a client; its text is shown this once")
                .details(
                    "Makes a random secret, stores its hash and answers the secret itself. It cannot be read \
                     again later.",
                )
                .takes(SECRET)
                .answers(200, "The secret", Data("Secret"))
                .refuses(&[Validation, NotFound])
        }
        Auth::DeleteSecret => new("deleteSecret", CLIENTS, "Removes a secret of a client")
            .details(
                "Deletes one secret, which is refused from then on. Other secrets of the client stay \
                 valid.",
            )
            .answers(204, "It is not there", Empty)
            .refuses(&[NotFound]),
        Auth::AddScopeToClient => new("addScopeToClient", CLIENTS, "Gives a client a scope")
            .details(
                "Allows the client to ask for the scope. It answers the same if the client has the scope \
                 already.",
            )
            .answers(204, "The client has it", Empty)
            .refuses(&[Validation, NotFound]),
        Auth::DeleteScopeFromClient => new("deleteScopeFromClient", CLIENTS, "Takes a scope from a client")
            .details(
                "Forbids the client to ask for the scope in new tokens. It answers the same if the client \
                 does not have the scope.",
            )
            .answers(204, "The client does not have it", Empty)
            .refuses(&[NotFound]),
        Auth::ListScopes => new("listScopes", SCOPES, "Lists scopes")
            .details("Answers every scope with the scopes that it brings along, in one list without pages.")
            .answers(200, "All of them", Json("ScopesResponse")),
        Auth::CreateScope => new("createScope", SCOPES, "Creates a scope")
            .details("Stores a scope under a new id and answers it. A label that is taken is refused.")
            .takes(SCOPE)
            .answers(201, "The scope", Data("Scope"))
            .refuses(&[Validation]),
        Auth::ReadScope => new("readScope", SCOPES, "Reads a scope")
            .details("Answers one scope with its metadata and the scopes that it brings along.")
            .answers(200, "The scope", Data("Scope"))
            .refuses(&[NotFound]),
        Auth::UpdateScope => new("updateScope", SCOPES, "Replaces label and metadata of a scope")
            .details("Stores the new label and metadata of a scope. Clients that have the scope keep it.")
            .takes(SCOPE)
            .answers(200, "The scope", Data("Scope"))
            .refuses(&[Validation, NotFound]),
        Auth::DeleteScope => new("deleteScope", SCOPES, "Removes a scope with all links to it")
            .details("Deletes the scope and takes it from all clients and scopes in one write.")
            .answers(204, "It is not there", Empty)
            .refuses(&[NotFound]),
        Auth::AddTransientScope => new("addTransientScope", SCOPES, "Lets a scope bring another along")
            .details("Links two scopes, so that a client with the first may use the second as well.")
            .answers(204, "It does", Empty)
            .refuses(&[Validation, NotFound]),
        Auth::DeleteTransientScope => {
            new("deleteTransientScope", SCOPES, "Ends that a scope brings another along")
                .details(
                    "Removes the link between two scopes, so that the first alone no longer allows the \
                     second.",
                )
                .answers(204, "It does not", Empty)
                .refuses(&[NotFound])
        }
        Auth::ListUsers => new("listUsers", USERS, "Lists users")
            .details(
                "Answers every user who has logged in through the identity provider, in one list without \
                 pages.",
            )
            .answers(200, "All of them", Json("UsersResponse")),
        Auth::ReadUser => new("readUser", USERS, "Reads a user")
            .details(
                "Answers one user with the subject and the e-mail address that the identity provider \
                 told.",
            )
            .answers(200, "The user", Data("User"))
            .refuses(&[NotFound]),
        Auth::RotateKeys => new("rotateKeys", SERVICE, "Lets the next key sign tokens")
            .details(
                "Makes the prepared key the signing key and prepares another one. Tokens of the former \
                 key stay valid until they expire.",
            )
            .answers(204, "It does", Empty)
            .refuses(&[Validation]),
        Auth::RevokeKey => new("revokeKey", SERVICE, "Removes a key: what it signed is refused from now on")
            .details(
                "Deletes a key at once. Every token that it signed is refused from then on, so use it \
                 only after a leak.",
            )
            .answers(204, "It is not there", Empty)
            .refuses(&[NotFound]),
        Auth::Configuration => new("getOIDCWellKnowns", OAUTH, "What OAuth clients need to know")
            .details(
                "Answers the discovery document of OpenID Connect: the issuer and the addresses of all \
                 protocol endpoints.",
            )
            .answers(200, "Issuer, endpoints and what they can do", Json("Discovery")),
        Auth::Keys => new("getKeys", OAUTH, "The keys that sign tokens")
            .details(
                "Answers the public keys as a JSON Web Key Set, with which anybody can check the \
                 signature of a token.",
            )
            .answers(200, "The public parts", Json("KeySet")),
        Auth::Token => protocol("getToken", "Grants tokens")
            .details(
                "Checks the client and its grant (client credentials, authorization code, refresh token \
                 or assertion) and answers an access token. A code or refresh token is used up by this.",
            )
            .takes(Body { required: false, contents: &[(FORM, Json("TokenRequest"))] })
            .answers(200, "The tokens", Json("TokenResponse")),
        Auth::Introspect => protocol("introspectToken", "Tells what a token says")
            .details(
                "Checks the client and answers what the token holds, or only that it is not active. \
                 Clients may ask about their own tokens.",
            )
            .takes(Body { required: false, contents: &[(FORM, Json("IntrospectRequest"))] })
            .answers(200, "Whether it is good, and what it says", Json("Introspection")),
        Auth::Revoke => protocol("revokeToken", "Revokes a token")
            .details(
                "Revokes a token of the client, which takes effect at once. It answers 200 for an unknown \
                 token too, as the standard asks.",
            )
            .takes(Body { required: false, contents: &[(FORM, Json("IntrospectRequest"))] })
            .answers(200, "It is not good any more", Empty),
        Auth::Authorize => protocol("authorize", "Sends a user to log in")
            .details(
                "Checks the client and its redirect URI, then redirects the browser to the identity \
                 provider. A fault is told to the client through its redirect URI.",
            )
            .reads(&AUTHORIZE)
            .answers(302, "To the identity provider, or back to the client with an error", Empty)
            .answers(400, "Client or redirect URI are unknown", Text("text/plain; charset=utf-8")),
        Auth::Callback => protocol("finishAuthorization", "Takes a user back from the identity provider")
            .details(
                "Checks the code that the identity provider sent, stores the user and redirects the \
                 browser to the client with a code of this server.",
            )
            .reads(&CALLBACK)
            .answers(302, "To the client, with a code", Empty)
            .answers(400, "The provider refused", Text("text/plain; charset=utf-8")),
        Auth::UserInfo => new("getUserInfo", OAUTH, "Tells a client who logged in")
            .details(
                "Answers who the token stands for: the subject, and the e-mail address where the scope \
                 allows that.",
            )
            .answers(200, "What it may know", Json("UserInfo"))
            .answers(401, "No token, or none that is good", Text("text/plain; charset=utf-8"))
            .answers(403, "The token does not belong to a user", Text("text/plain; charset=utf-8")),
        Auth::EndSession => protocol("endSession", "Ends the sessions of a user with a client")
            .details(
                "Ends the sessions that the user of the id token has with the client, then redirects \
                 the browser. Without a token it only redirects.",
            )
            .reads(&END_SESSION)
            .answers(302, "To where the client wants", Empty),
        Auth::LoggedOut => new("loggedOut", OAUTH, "Where a user is sent who logged out")
            .details("Answers a plain text, for logouts whose client named no address to return to.")
            .answers(200, "A text", Text("text/plain; charset=utf-8")),
    }
}

const AUTHORIZE: [Parameter; 9] = [
    query("client_id", r#"{"type":"string","examples":["billing"]}"#, "The client."),
    query(
        "redirect_uri",
        r#"{"type":"string","examples":["https://app.example.com/callback"]}"#,
        "Where the user is sent afterwards: one of the client's, byte by byte.",
    ),
    query("response_type", r#"{"type":"string","examples":["code"]}"#, "`code`"),
    query(
        "scope",
        r#"{"type":"string","examples":["openid offline_access"]}"#,
        "Names divided by spaces, `openid` among them; `offline_access` for a refresh token.",
    ),
    query("state", r#"{"type":"string","examples":["a81f"]}"#, "Sent back as it is."),
    query("nonce", TEXT, "Stands in the id token."),
    query("code_challenge", TEXT, "PKCE; public clients need it."),
    query("code_challenge_method", TEXT, "`S256` or `plain`"),
    query("login_hint", TEXT, "For the identity provider, as are `prompt` and `max_age`."),
];
const CALLBACK: [Parameter; 4] = [
    query("code", r#"{"type":"string","examples":["SplxlOBeZQQYbYS6WxSbIA"]}"#, "The provider's code."),
    query("state", r#"{"type":"string","examples":["c54e"]}"#, "What the provider was sent."),
    query("error", TEXT, "Why nobody logged in."),
    query("error_description", TEXT, "The same for a person."),
];
const END_SESSION: [Parameter; 4] = [
    query("id_token_hint", TEXT, "Whose sessions end."),
    query("client_id", r#"{"type":"string","examples":["billing"]}"#, "The client, where there is no hint."),
    query(
        "post_logout_redirect_uri",
        r#"{"type":"string","examples":["https://app.example.com/"]}"#,
        "Where the user is sent afterwards: one of the client's, byte by byte.",
    ),
    query("state", TEXT, "Sent along."),
];

/// Returns the description of a protocol endpoint, whose errors have the OAuth form.
fn protocol(id: &'static str, summary: &'static str) -> Description {
    let description = Description::new(id, OAUTH, summary);
    [
        (400, "Refused"),
        (401, "The client or its secret is unknown"),
        (429, "Too many wrong secrets"),
        (503, "Not now"),
    ]
    .into_iter()
    .fold(description, |description, (status, summary)| {
        description.answers(status, summary, Json("OAuthError"))
    })
}
