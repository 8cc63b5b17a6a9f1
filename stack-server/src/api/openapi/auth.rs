//! The operations of the authorization server, described.

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

/// The description of an operation.
pub(crate) fn describe(operation: Auth) -> Description {
    let new = Description::new;
    match operation {
        Auth::Info => new("getAuthServerInfo", SERVICE, "The release of the authorization server").answers(
            200,
            "The release",
            Json("AuthServerInfo"),
        ),
        Auth::Health => new("getAuthHealth", SERVICE, "Whether the store works")
            .answers(200, "It does", Json("Health"))
            .answers(500, "It does not", Json("Health")),
        Auth::Ready => new("isAuthReady", SERVICE, "Whether the store works, for load balancers")
            .answers(200, "It does", Json("Health"))
            .answers(503, "It does not", Json("Health")),
        Auth::ListClients => {
            new("listClients", CLIENTS, "Lists clients").answers(200, "All of them", Json("ClientsResponse"))
        }
        Auth::CreateClient => new("createClient", CLIENTS, "Creates a client")
            .takes(CLIENT)
            .answers(201, "The client", Data("Client"))
            .refuses(&[Validation]),
        Auth::ReadClient => new("readClient", CLIENTS, "Reads a client")
            .answers(200, "The client", Data("Client"))
            .refuses(&[NotFound]),
        Auth::UpdateClient => new("updateClient", CLIENTS, "Replaces all of a client but its secrets")
            .takes(CLIENT)
            .answers(200, "The client", Data("Client"))
            .refuses(&[Validation, NotFound]),
        Auth::DeleteClient => new("deleteClient", CLIENTS, "Removes a client with its secrets").answers(
            204,
            "It is not there",
            Empty,
        ),
        Auth::CreateSecret => {
            new("createSecret", CLIENTS, "Adds a secret to a client; its text is shown this once")
                .takes(SECRET)
                .answers(200, "The secret", Data("Secret"))
                .refuses(&[Validation, NotFound])
        }
        Auth::DeleteSecret => new("deleteSecret", CLIENTS, "Removes a secret of a client")
            .answers(204, "It is not there", Empty)
            .refuses(&[NotFound]),
        Auth::AddScopeToClient => new("addScopeToClient", CLIENTS, "Gives a client a scope")
            .answers(204, "The client has it", Empty)
            .refuses(&[Validation, NotFound]),
        Auth::DeleteScopeFromClient => new("deleteScopeFromClient", CLIENTS, "Takes a scope from a client")
            .answers(204, "The client does not have it", Empty)
            .refuses(&[NotFound]),
        Auth::ListScopes => {
            new("listScopes", SCOPES, "Lists scopes").answers(200, "All of them", Json("ScopesResponse"))
        }
        Auth::CreateScope => new("createScope", SCOPES, "Creates a scope")
            .takes(SCOPE)
            .answers(201, "The scope", Data("Scope"))
            .refuses(&[Validation]),
        Auth::ReadScope => new("readScope", SCOPES, "Reads a scope")
            .answers(200, "The scope", Data("Scope"))
            .refuses(&[NotFound]),
        Auth::UpdateScope => new("updateScope", SCOPES, "Replaces label and metadata of a scope")
            .takes(SCOPE)
            .answers(200, "The scope", Data("Scope"))
            .refuses(&[Validation, NotFound]),
        Auth::DeleteScope => new("deleteScope", SCOPES, "Removes a scope with all links to it")
            .answers(204, "It is not there", Empty)
            .refuses(&[NotFound]),
        Auth::AddTransientScope => new("addTransientScope", SCOPES, "Lets a scope bring another along")
            .answers(204, "It does", Empty)
            .refuses(&[Validation, NotFound]),
        Auth::DeleteTransientScope => {
            new("deleteTransientScope", SCOPES, "Ends that a scope brings another along")
                .answers(204, "It does not", Empty)
                .refuses(&[NotFound])
        }
        Auth::ListUsers => {
            new("listUsers", USERS, "Lists users").answers(200, "All of them", Json("UsersResponse"))
        }
        Auth::ReadUser => {
            new("readUser", USERS, "Reads a user").answers(200, "The user", Data("User")).refuses(&[NotFound])
        }
        Auth::RotateKeys => new("rotateKeys", SERVICE, "Lets the next key sign tokens")
            .answers(204, "It does", Empty)
            .refuses(&[Validation]),
        Auth::RevokeKey => new("revokeKey", SERVICE, "Removes a key: what it signed is refused from now on")
            .answers(204, "It is not there", Empty)
            .refuses(&[NotFound]),
        Auth::Configuration => new("getOIDCWellKnowns", OAUTH, "What OAuth clients need to know").answers(
            200,
            "Issuer, endpoints and what they can do",
            Json("Discovery"),
        ),
        Auth::Keys => new("getKeys", OAUTH, "The keys that sign tokens").answers(
            200,
            "The public parts",
            Json("KeySet"),
        ),
        Auth::Token => protocol("getToken", "Grants tokens")
            .takes(Body { required: false, contents: &[(FORM, Json("TokenRequest"))] })
            .answers(200, "The tokens", Json("TokenResponse")),
        Auth::Introspect => protocol("introspectToken", "Tells what a token says")
            .takes(Body { required: false, contents: &[(FORM, Json("IntrospectRequest"))] })
            .answers(200, "Whether it is good, and what it says", Json("Introspection")),
        Auth::Revoke => protocol("revokeToken", "Revokes a token")
            .takes(Body { required: false, contents: &[(FORM, Json("IntrospectRequest"))] })
            .answers(200, "It is not good any more", Empty),
        Auth::Authorize => protocol("authorize", "Sends a user to log in")
            .reads(&AUTHORIZE)
            .answers(302, "To the identity provider, or back to the client with an error", Empty)
            .answers(400, "Client or redirect URI are unknown", Text("text/plain; charset=utf-8")),
        Auth::Callback => protocol("finishAuthorization", "Takes a user back from the identity provider")
            .reads(&CALLBACK)
            .answers(302, "To the client, with a code", Empty)
            .answers(400, "The provider refused", Text("text/plain; charset=utf-8")),
        Auth::UserInfo => new("getUserInfo", OAUTH, "Tells a client who logged in")
            .answers(200, "What it may know", Json("UserInfo"))
            .answers(401, "No token, or none that is good", Text("text/plain; charset=utf-8"))
            .answers(403, "The token is of no user", Text("text/plain; charset=utf-8")),
        Auth::EndSession => protocol("endSession", "Ends the sessions of a user with a client")
            .reads(&END_SESSION)
            .answers(302, "To where the client wants", Empty),
        Auth::LoggedOut => new("loggedOut", OAUTH, "Where a user is sent who logged out").answers(
            200,
            "A text",
            Text("text/plain; charset=utf-8"),
        ),
    }
}

const AUTHORIZE: [Parameter; 9] = [
    query("client_id", TEXT, "The client."),
    query("redirect_uri", TEXT, "Where the user is sent afterwards: one of the client's, byte by byte."),
    query("response_type", TEXT, "`code`"),
    query(
        "scope",
        TEXT,
        "Names divided by spaces, `openid` among them; `offline_access` for a refresh token.",
    ),
    query("state", TEXT, "Sent back as it is."),
    query("nonce", TEXT, "Stands in the id token."),
    query("code_challenge", TEXT, "PKCE; public clients need it."),
    query("code_challenge_method", TEXT, "`S256` or `plain`"),
    query("login_hint", TEXT, "For the identity provider, as are `prompt` and `max_age`."),
];
const CALLBACK: [Parameter; 4] = [
    query("code", TEXT, "The provider's code."),
    query("state", TEXT, "What the provider was sent."),
    query("error", TEXT, "Why nobody logged in."),
    query("error_description", TEXT, "The same for a person."),
];
const END_SESSION: [Parameter; 4] = [
    query("id_token_hint", TEXT, "Whose sessions end."),
    query("client_id", TEXT, "The client, where there is no hint."),
    query(
        "post_logout_redirect_uri",
        TEXT,
        "Where the user is sent afterwards: one of the client's, byte by byte.",
    ),
    query("state", TEXT, "Sent along."),
];

/// The description of a protocol endpoint, whose refusals have the form of OAuth.
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
