//! Parses the values of flags. The errors are texts for a person.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::duration;

/// Stores a parsed value, or passes its error on.
pub(super) fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

/// Parses an address and a port. Looks up names such as `localhost`. Without a host, the result is every address.
pub(super) fn address(value: &str) -> Result<SocketAddr, String> {
    let no_address = || format!("{value:?} is no address");
    if let Some(port) = value.strip_prefix(':') {
        return Ok((Ipv4Addr::UNSPECIFIED, port.parse().map_err(|_| no_address())?).into());
    }
    let found: Vec<SocketAddr> = value.to_socket_addrs().map_err(|_| no_address())?.collect();
    // Prefer IPv4 if a name has addresses of both kinds: all clients try IPv4 sooner or later.
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied().ok_or_else(no_address)
}

/// Parses one of several words into the value that it stands for.
pub(super) fn choice<T: Copy>(value: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == value).map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{value:?} is none of {}", words.join(", "))
    })
}

pub(super) fn switch(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "t" | "true" => Ok(true),
        "0" | "f" | "false" => Ok(false),
        _ => Err(format!("{value:?} is neither true nor false")),
    }
}

/// Parses the path of a file or directory. Refuses an empty path, which would be the current directory.
pub(super) fn path(value: &str) -> Result<PathBuf, String> {
    if value.is_empty() {
        return Err("there is no path".to_owned());
    }
    Ok(PathBuf::from(value))
}

/// Parses a duration greater than zero.
pub(super) fn period(value: &str) -> Result<Duration, String> {
    match duration::parse(value)? {
        Duration::ZERO => Err(format!("{value:?} is no time at all")),
        period => Ok(period),
    }
}

pub(super) fn count(value: &str, max: usize) -> Result<usize, String> {
    match value.parse() {
        Ok(count) if (1..=max).contains(&count) => Ok(count),
        _ => Err(format!("{value:?} is no number from 1 to {max}")),
    }
}

/// Parses a number of bytes, with or without a suffix.
pub(super) fn size(value: &str) -> Result<usize, String> {
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = value.split_at(digits);
    let unit: usize = match suffix {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return Err(format!("{value:?} has none of the suffixes KiB, MiB, GiB")),
    };
    let bytes = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| format!("{value:?} is no size"))
}
