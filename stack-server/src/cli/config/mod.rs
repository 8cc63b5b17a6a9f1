//! The command line and its environment variables.
//!
//! Every flag has a variable; the flag goes first. Flags of this server's own have variables that begin with
//! `STACK_`, those that servers of this API already have keep their bare names. Of these some are common to much
//! software; what they hold that this server cannot read is passed over with a warning.
//!
//! `invocation.rs` is what comes out. `arguments.rs` takes a command line apart, `flags.rs` is the table of flags, `values.rs` how their values are read,
//! `usage.rs` the text of `--help`.

mod arguments;
mod auth;
mod error;
mod flags;
mod invocation;
mod usage;
mod values;

use std::ffi::OsString;

use self::arguments::{Command, Line};
use self::auth::settle_auth;
pub use self::error::ConfigError;
use self::flags::{FOREIGN, Flag};
pub(crate) use self::invocation::key_file_of;
pub use self::invocation::{AuthMode, Config, Invocation, KeptHead, Topic};
pub use self::usage::{help, help_of};
use crate::settings::http_share;

/// The environment variable of a flag that servers of this API have in common.
fn variable_of(flag: &str) -> String {
    flag.to_ascii_uppercase().replace('-', "_")
}

/// Reads a command line, without the name of the program, and the variables that `variable` looks up.
///
/// # Errors
///
/// If a command or a flag is unknown or a value is not what its flag wants.
pub fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Invocation, ConfigError> {
    let arguments = match arguments::read(arguments)? {
        Line::Answered(invocation) => return Ok(invocation),
        Line::Configured(arguments) => arguments,
    };
    // A variable that is empty is one that is not set.
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let foreign = FOREIGN.iter().map(|flag| variable_of(flag.name)).filter(|name| variable(name).is_some());
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

/// Sets what flags say, and what variables say of all others.
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

/// Refuses to listen where others could do anything, or read tokens on their way.
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
