//! The command line and its environment variables.
//!
//! Every flag has an environment variable; the flag takes precedence. Variables of this server's own flags begin with
//! `STACK_`, and those that servers of this API share have their usual names. Other software also uses some of these
//! names, so the server ignores invalid values of them with a warning.
//!
//! `invocation.rs` defines the result. `arguments.rs` splits a command line, `flags.rs` contains the table of flags,
//! `values.rs` parses their values, and `usage.rs` is the text of `--help`.

mod arguments;
mod auth;
mod error;
mod flags;
mod invocation;
mod usage;
mod values;

use std::ffi::OsString;

use self::arguments::{Command, CommandLine};
use self::auth::settle_auth;
pub use self::error::ConfigError;
use self::flags::{Flag, IGNORED_FLAGS};
pub(crate) use self::invocation::key_file_of;
pub use self::invocation::{AuthMode, Config, ExpectedHead, Invocation, Topic};
pub use self::usage::{help, help_of};
use crate::settings::http_share;

/// Returns the environment variable of a flag that servers of this API share.
fn variable_of(flag: &str) -> String {
    flag.to_ascii_uppercase().replace('-', "_")
}

/// Parses a command line, without the name of the program. `variable` returns the environment variables.
///
/// # Errors
///
/// Fails if a command or a flag is unknown, or if a value is not valid for its flag.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Invocation, ConfigError> {
    let arguments = match arguments::read(arguments)? {
        CommandLine::Complete(invocation) => return Ok(invocation),
        CommandLine::Configured(arguments) => arguments,
    };
    // An empty variable counts as unset.
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let foreign =
        IGNORED_FLAGS.iter().map(|flag| variable_of(flag.name)).filter(|name| variable(name).is_some());
    let mut config = Config { ignored: foreign.collect(), ..Config::default() };
    config.ignored.extend(arguments.ignored);
    set_all(&mut config, &arguments.flags, &variable)?;
    Ok(match arguments.command {
        Command::Serve => {
            settle_auth(&mut config, variable("STACK_AUTH_KEY"))?;
            check_exposure(&config)?;
            Invocation::Serve(Box::new(config))
        }
        Command::Worker => Invocation::Worker(config.ignored),
        Command::Verify { directory, head } => Invocation::Verify(directory, head),
    })
}

/// Applies the flags, and the variables of all other flags.
fn set_all(
    config: &mut Config,
    given: &[(&Flag, String)],
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<(), ConfigError> {
    for flag in flags::all().filter(|flag| given.iter().all(|(have, _)| have.name != flag.name)) {
        let Some(value) = variable(flag.variable) else { continue };
        match (flag.set)(config, &value) {
            Ok(()) => {}
            Err(error) if flag.is_shared() => config.ignored.push(format!("{} ({error})", flag.variable)),
            Err(error) => return Err(ConfigError(format!("{}: {error}", flag.variable))),
        }
    }
    for (flag, value) in given {
        (flag.set)(config, value).map_err(|error| ConfigError(format!("--{}: {error}", flag.name)))?;
    }
    let names_worker = |ignored: &String| ignored.to_lowercase().replace('_', "-").contains("worker-grpc-");
    if config.ignored.iter().any(names_worker) {
        (config.names_worker, config.settings.worker) = (true, true);
    }
    config.settings.http_memory = http_share(config.memory_budget);
    Ok(())
}

/// Refuses an unauthenticated or unencrypted server on an address that other machines can reach.
fn check_exposure(config: &Config) -> Result<(), ConfigError> {
    let tls = config.settings.tls.as_ref();
    if tls.is_some_and(|tls| tls.certificate.as_os_str().is_empty() || tls.key.as_os_str().is_empty()) {
        return Err(ConfigError("TLS needs both --tls-certificate and --tls-key".to_owned()));
    }
    if config.listen.ip().is_loopback() {
        return Ok(());
    }
    if !config.auth_enabled && !config.allow_unauthenticated {
        return Err(ConfigError(format!(
            "{} can be reached by other machines and nothing asks them who they are: pass --auth-enabled, or \
             --allow-unauthenticated if a proxy in front does",
            config.listen
        )));
    }
    if config.auth_enabled && tls.is_none() && !config.settings.behind_proxy {
        return Err(ConfigError(format!(
            "tokens that come to {} from other machines could be read on their way: pass --tls-certificate and \
             --tls-key, or --behind-proxy if a proxy in front speaks TLS",
            config.listen
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
