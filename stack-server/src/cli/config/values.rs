//! Parses the values of flags.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::duration::{self, DurationError};
use crate::limits::KEY_ROTATION_MIN;

/// The reason why a flag is refused: an invalid value, or a problem with the file that the value names.
pub(super) type FlagError = Box<dyn std::error::Error + Send + Sync>;

/// A value that its flag does not accept.
#[derive(Debug, Error)]
pub(super) enum ValueError {
    #[error("{0:?} is no address")]
    NoAddress(String),
    #[error("{value:?} is none of {words}")]
    UnknownWord { value: String, words: String },
    #[error("{0:?} is neither true nor false")]
    NoSwitch(String),
    #[error("there is no path")]
    NoPath,
    #[error(transparent)]
    NoDuration(#[from] DurationError),
    #[error("{0:?} is no time at all")]
    ZeroDuration(String),
    #[error("{value:?} is shorter than {} minutes", min.as_secs() / 60)]
    ShortDuration { value: String, min: Duration },
    #[error("{value:?} is no number from 1 to {max}")]
    NoCount { value: String, max: usize },
    #[error("{0:?} has none of the suffixes KiB, MiB, GiB")]
    UnknownSuffix(String),
    #[error("{0:?} is no size")]
    NoSize(String),
}

/// Stores a parsed value, or returns its error.
pub(super) fn put<T, E: Into<FlagError>>(place: &mut T, value: Result<T, E>) -> Result<(), FlagError> {
    *place = value.map_err(Into::into)?;
    Ok(())
}

/// Parses an address and a port. Looks up names such as `localhost`. Without a host, the result is every address.
pub(super) fn address(value: &str) -> Result<SocketAddr, ValueError> {
    let no_address = || ValueError::NoAddress(value.to_owned());
    if let Some(port) = value.strip_prefix(':') {
        return Ok((Ipv4Addr::UNSPECIFIED, port.parse().map_err(|_| no_address())?).into());
    }
    let found: Vec<SocketAddr> = value.to_socket_addrs().map_err(|_| no_address())?.collect();
    // Prefer IPv4 if a name has addresses of both kinds: all clients try IPv4 sooner or later.
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied().ok_or_else(no_address)
}

/// Returns the value of one of several words.
pub(super) fn choice<T: Copy>(value: &str, words: &[(&str, T)]) -> Result<T, ValueError> {
    let found = words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        ValueError::UnknownWord { value: value.to_owned(), words: words.join(", ") }
    })
}

pub(super) fn switch(value: &str) -> Result<bool, ValueError> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Ok(true),
        "0" | "f" | "false" => Ok(false),
        _ => Err(ValueError::NoSwitch(value.to_owned())),
    }
}

/// Parses the path of a file or directory. Refuses an empty path, which would be the current directory.
pub(super) fn path(value: &str) -> Result<PathBuf, ValueError> {
    if value.is_empty() {
        return Err(ValueError::NoPath);
    }
    Ok(PathBuf::from(value))
}

/// Parses a duration greater than zero.
pub(super) fn period(value: &str) -> Result<Duration, ValueError> {
    match duration::parse(value)? {
        Duration::ZERO => Err(ValueError::ZeroDuration(value.to_owned())),
        period => Ok(period),
    }
}

/// Parses the period after which the signing key is replaced.
pub(super) fn key_rotation(value: &str) -> Result<Duration, ValueError> {
    let period = duration::parse(value)?;
    if period < KEY_ROTATION_MIN {
        return Err(ValueError::ShortDuration { value: value.to_owned(), min: KEY_ROTATION_MIN });
    }
    Ok(period)
}

pub(super) fn count(value: &str, max: usize) -> Result<usize, ValueError> {
    match value.parse() {
        Ok(count) if (1..=max).contains(&count) => Ok(count),
        _ => Err(ValueError::NoCount { value: value.to_owned(), max }),
    }
}

/// As [`count`], for settings of 32 bits.
pub(super) fn small_count(value: &str, max: u32) -> Result<u32, ValueError> {
    count(value, max as usize).map(|count| u32::try_from(count).unwrap_or(max))
}

/// Parses a number of bytes, with or without a suffix.
pub(super) fn size(value: &str) -> Result<usize, ValueError> {
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = value.split_at(digits);
    let unit: usize = match suffix {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err(ValueError::UnknownSuffix(value.to_owned())),
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| ValueError::NoSize(value.to_owned()))
}
