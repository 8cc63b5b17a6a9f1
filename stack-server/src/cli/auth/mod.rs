//! `stack-server auth`: manages clients, tokens and keys, of a stopped store or through a running server.
//!
//! - `error`: errors of the commands.
//! - `local`: opens the data directory itself.
//! - `remote`: sends requests to a running server, with a token of a client that the user specifies.

mod error;
mod local;
mod remote;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use ledger_numscript::cli::suggestion;
use ledger_store::Store;
use serde_json::{Value, json};

use crate::auth::keys::master::{KeySource, MasterKey};
use crate::cli::config::key_file_of;
use crate::cli::directory;
use crate::cli::exit::{self, Exit};

pub use error::Failure;
use error::{LocalError, TargetError};
use local::Local;
use remote::Remote;

/// Default address of the running server.
const SERVER: &str = "http://127.0.0.1:8080";

/// The scopes of the first client, and the default scopes of a requested token.
const SCOPES: [&str; 7] =
    ["openid", "auth:read", "auth:write", "ledger:read", "ledger:write", "payments:read", "payments:write"];

/// The options, for suggestions.
const OPTIONS: [&str; 14] = [
    "--data",
    "--auth-key-file",
    "--server",
    "--client-id",
    "--client-secret",
    "--name",
    "--id",
    "--description",
    "--scope",
    "--redirect-uri",
    "--public",
    "--trusted",
    "--allow-shared-directory",
    "--help",
];

/// The text of `--help`.
const HELP: &str = "\
stack-server auth: clients, tokens and keys of the authorization server

Usage: stack-server auth init [--name NAME]           make a first client that may do everything, and print it once
       stack-server auth client create --name NAME [--id ID] [--scope NAME]… [--public] [--trusted]
                                       [--redirect-uri URI]… [--description TEXT]
       stack-server auth client list
       stack-server auth client rotate-secret ID      print a new secret, and remove the older ones
       stack-server auth client delete ID
       stack-server auth token [--scope NAMES]        print a token
       stack-server auth keys rotate                  let the next key sign tokens

On a stopped store:        --data DIR [--auth-key-file FILE]      STACK_DATA, STACK_AUTH_KEY_FILE, STACK_AUTH_KEY
                           [--allow-shared-directory]             STACK_ALLOW_SHARED_DIRECTORY
Through a running server:  --server URL                           STACK_SERVER (http://127.0.0.1:8080)
                           --client-id ID --client-secret SECRET  STACK_CLIENT_ID, STACK_CLIENT_SECRET

init works on a stopped store (./data), token through a running server. The others need --data, or go through a
running server. A secret on a command line is seen by others on the machine: prefer the variables, which init prints.

";

fn usage_error(reason: impl Into<String>) -> Failure {
    Failure::Usage(reason.into())
}

/// The parsed command line.
#[derive(Default)]
struct CommandLine {
    /// The arguments that are not options: the command, and the id of a client if the command takes one.
    words: Vec<String>,
    data: Option<PathBuf>,
    key_file: Option<PathBuf>,
    key: Option<String>,
    server: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    name: Option<String>,
    id: Option<String>,
    description: Option<String>,
    scopes: Vec<String>,
    redirect_uris: Vec<String>,
    public: bool,
    trusted: bool,
    allow_shared_directory: bool,
}

impl CommandLine {
    /// Parses the arguments. Variables of the environment supply the options that have one and are missing. Returns
    /// `None` if the user asks for help.
    fn read(
        arguments: Vec<OsString>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, Failure> {
        use lexopt::Arg;
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut command_line = Self {
            data: given("STACK_DATA").map(PathBuf::from),
            key_file: given("STACK_AUTH_KEY_FILE").map(PathBuf::from),
            key: given("STACK_AUTH_KEY"),
            server: given("STACK_SERVER"),
            client_id: given("STACK_CLIENT_ID"),
            client_secret: given("STACK_CLIENT_SECRET"),
            allow_shared_directory: given("STACK_ALLOW_SHARED_DIRECTORY")
                .is_some_and(|value| directory::is_allowed_by(&value)),
            ..Self::default()
        };
        let refused = |error: lexopt::Error| usage_error(error.to_string());
        let (mut data, mut server) = (None, None);
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next().map_err(refused)? {
            let name = match argument {
                Arg::Long("help") | Arg::Short('h') => return Ok(None),
                Arg::Long(name @ ("public" | "trusted" | "allow-shared-directory")) => {
                    let switch = match name {
                        "public" => &mut command_line.public,
                        "trusted" => &mut command_line.trusted,
                        _ => &mut command_line.allow_shared_directory,
                    };
                    *switch = true;
                    continue;
                }
                Arg::Long(name) => name.to_owned(),
                Arg::Value(word) => {
                    command_line.words.push(word.to_string_lossy().into_owned());
                    continue;
                }
                Arg::Short(_) => return Err(refused(argument.unexpected())),
            };
            let mut value = || parser.value().map_err(refused);
            let mut text =
                || value()?.into_string().map_err(|_| usage_error(format!("--{name}: it is not UTF-8")));
            match name.as_str() {
                "data" => data = Some(text()?.into()),
                "auth-key-file" => command_line.key_file = Some(text()?.into()),
                "server" => server = Some(text()?),
                "client-id" => command_line.client_id = Some(text()?),
                "client-secret" => command_line.client_secret = Some(text()?),
                "name" => command_line.name = Some(text()?),
                "id" => command_line.id = Some(text()?),
                "description" => command_line.description = Some(text()?),
                "scope" => command_line.scopes.extend(text()?.split([' ', ',']).map(str::to_owned)),
                "redirect-uri" => command_line.redirect_uris.push(text()?),
                other => {
                    let hint = suggestion(other, OPTIONS);
                    return Err(usage_error(format!(
                        "unknown option --{other}{hint}; see stack-server help auth"
                    )));
                }
            }
        }
        command_line.scopes.retain(|scope| !scope.is_empty());
        command_line.choose_target(data, server)?;
        Ok(Some(command_line))
    }

    /// Lets the option `--data` or `--server` choose between a stopped store and a running server. Without either,
    /// `STACK_DATA` chooses a stopped store.
    fn choose_target(&mut self, data: Option<PathBuf>, server: Option<String>) -> Result<(), Failure> {
        match (data, server) {
            (Some(_), Some(_)) => {
                return Err(usage_error(
                    "--data is a stopped store, --server a running server: pass one of them",
                ));
            }
            (Some(data), None) => self.data = Some(data),
            (None, Some(_)) if self.words == ["init"] => {
                return Err(usage_error("init works on a stopped store: pass --data, not --server"));
            }
            (None, Some(server)) => (self.data, self.server) = (None, Some(server)),
            (None, None) => {}
        }
        Ok(())
    }

    /// Opens the store of the data directory, or of the default one.
    fn local(&self) -> Result<Local, Failure> {
        let data = self.data.clone().unwrap_or_else(|| PathBuf::from("./data"));
        let source = match &self.key {
            Some(key) => KeySource::Given(
                MasterKey::parse(key).map_err(|error| usage_error(format!("STACK_AUTH_KEY: {error}")))?,
            ),
            None => KeySource::File(self.key_file.clone().unwrap_or_else(|| key_file_of(&data))),
        };
        let address = self.server.as_deref().unwrap_or(SERVER);
        Ok(Local::open(&data, source, address, self.allow_shared_directory)?)
    }

    /// Returns the running server. Requests to it need the id and secret of a client.
    fn remote(&self) -> Result<Remote, Failure> {
        let (Some(id), Some(secret)) = (&self.client_id, &self.client_secret) else {
            return Err(usage_error(
                "a running server is asked for as a client: pass STACK_CLIENT_ID and STACK_CLIENT_SECRET, or --data for \
                 a stopped store",
            ));
        };
        Ok(Remote::new(self.server.as_deref().unwrap_or(SERVER), id, secret)?)
    }

    /// Like [`Self::target`], but does not create a store in a directory that has none.
    fn existing_target(&self) -> Result<Target, Failure> {
        match &self.data {
            Some(data) if !Store::exists(data) => Err(LocalError::NoStore(data.clone()).into()),
            _ => self.target(),
        }
    }

    /// Returns the store if the command line names its directory, else the running server.
    fn target(&self) -> Result<Target, Failure> {
        if self.data.is_some() {
            Ok(Target::Local(self.local()?))
        } else {
            Ok(Target::Remote(self.remote()?))
        }
    }

    /// Returns the client that the command line describes, in the form of a request body.
    fn draft(&self) -> Result<Value, Failure> {
        let name = self.name.as_ref().ok_or_else(|| usage_error("a client needs a --name"))?;
        let mut draft = json!({
            "name": name,
            "description": self.description.as_deref().unwrap_or_default(),
            "public": self.public,
            "trusted": self.trusted,
            "redirectUris": self.redirect_uris,
            "scopes": self.scopes
        });
        if let Some(id) = &self.id {
            draft["id"] = json!(id);
        }
        Ok(draft)
    }
}

/// The stopped store or the running server whose clients and keys a command manages.
enum Target {
    Local(Local),
    Remote(Remote),
}

impl Target {
    fn create(&self, draft: &Value) -> Result<String, TargetError> {
        match self {
            Self::Local(local) => Ok(local.create(draft)?),
            Self::Remote(remote) => Ok(remote.create(draft)?),
        }
    }

    fn add_secret(&self, id: &str) -> Result<String, TargetError> {
        match self {
            Self::Local(local) => Ok(local.add_secret(id, false)?),
            Self::Remote(remote) => Ok(remote.add_secret(id, false)?),
        }
    }

    fn rotate_secret(&self, id: &str) -> Result<String, TargetError> {
        match self {
            Self::Local(local) => Ok(local.add_secret(id, true)?),
            Self::Remote(remote) => Ok(remote.add_secret(id, true)?),
        }
    }

    fn list(&self) -> Result<Vec<Value>, TargetError> {
        match self {
            Self::Local(local) => Ok(local.list()?),
            Self::Remote(remote) => Ok(remote.list()?),
        }
    }

    fn delete(&self, id: &str) -> Result<(), TargetError> {
        match self {
            Self::Local(local) => Ok(local.delete(id)?),
            Self::Remote(remote) => Ok(remote.delete(id)?),
        }
    }

    fn rotate_keys(&self) -> Result<(), TargetError> {
        match self {
            Self::Local(local) => Ok(local.rotate_keys()?),
            Self::Remote(remote) => Ok(remote.rotate_keys()?),
        }
    }
}

/// Executes the command in the arguments after `auth`. Writes its result to `out`, in forms that shells and other
/// programs can read. The result may contain secrets.
///
/// # Errors
///
/// Fails if the command line is not valid, or if the command fails.
pub fn main(
    arguments: Vec<OsString>,
    variable: impl Fn(&str) -> Option<String>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(command_line) = CommandLine::read(arguments, variable)? else {
        return print(out, format!("{HELP}{}", exit::help(&Exit::OF_COMMANDS)).trim_end());
    };
    let words: Vec<&str> = command_line.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["init"] => init(&command_line, out),
        ["client", "create"] => {
            let target = command_line.target()?;
            let id = target.create(&command_line.draft()?)?;
            if command_line.public {
                return print(out, &exports(&id, None));
            }
            print(out, &exports(&id, Some(&target.add_secret(&id)?)))
        }
        ["client", "list"] => {
            for client in command_line.existing_target()?.list()? {
                print(out, &client.to_string())?;
            }
            Ok(())
        }
        ["client", "rotate-secret", id] => {
            print(out, &exports(id, Some(&command_line.existing_target()?.rotate_secret(id)?)))
        }
        ["client", "delete", id] => Ok(command_line.existing_target()?.delete(id)?),
        ["token"] => {
            let scopes =
                if command_line.scopes.is_empty() { SCOPES.join(" ") } else { command_line.scopes.join(" ") };
            print(out, &command_line.remote()?.token(&scopes)?)
        }
        ["keys", "rotate"] => Ok(command_line.existing_target()?.rotate_keys()?),
        [] => Err(usage_error("there is no command; see stack-server help auth")),
        words => Err(unknown_command(words)),
    }
}

/// Returns the error for words that are not a command. It names the first word that is not valid at its position.
fn unknown_command(words: &[&str]) -> Failure {
    let known: &[&str] = match words {
        ["client", _, ..] => &["create", "list", "rotate-secret", "delete"],
        ["keys", _, ..] => &["rotate"],
        _ => &["init", "client", "token", "keys"],
    };
    let word = if matches!(words, ["client" | "keys", _, ..]) { words[1] } else { words[0] };
    let hint = if known.contains(&word) { String::new() } else { suggestion(word, known.iter().copied()) };
    usage_error(format!("unknown command {:?}{hint}; see stack-server help auth", words.join(" ")))
}

/// Creates the first client of a store. A second call fails, because there are clients by then.
fn init(command_line: &CommandLine, out: &mut dyn Write) -> Result<(), Failure> {
    let local = command_line.local()?;
    if !local.list()?.is_empty() {
        return Err(LocalError::HasClients.into());
    }
    let name = command_line.name.as_deref().unwrap_or("admin");
    let id = local.create(&json!({"name": name, "trusted": true, "scopes": SCOPES}))?;
    let secret = local.add_secret(&id, false)?;
    local.close()?;
    print(out, &exports(&id, Some(&secret)))
}

/// Returns shell commands that set the variables with which later commands log in as a client.
fn exports(id: &str, secret: Option<&str>) -> String {
    // Users can choose ids. Inside single quotes, only the quote itself has a meaning.
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let mut text = format!("export STACK_CLIENT_ID={}", quoted(id));
    if let Some(secret) = secret {
        text.push_str(&format!("\nexport STACK_CLIENT_SECRET={}", quoted(secret)));
    }
    text
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
