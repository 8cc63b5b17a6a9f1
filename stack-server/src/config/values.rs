//! Values of flags, read from text. What is refused is told in words for a person.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::duration;

/// Puts a value in its place, if it is one.
pub(super) fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

/// An address and a port; a name such as `localhost` is looked up, and no name at all is every address.
pub(super) fn address(value: &str) -> Result<SocketAddr, String> {
    let no_address = || format!("{value:?} is no address");
    if let Some(port) = value.strip_prefix(':') {
        return Ok((Ipv4Addr::UNSPECIFIED, port.parse().map_err(|_| no_address())?).into());
    }
    let found: Vec<SocketAddr> = value.to_socket_addrs().map_err(|_| no_address())?.collect();
    // Where a name has addresses of both kinds, clients try the older one, if only in the end.
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied().ok_or_else(no_address)
}

/// One of some words, and what it stands for.
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

/// A file or directory. Nothing would be the directory that the process happens to be in.
pub(super) fn path(value: &str) -> Result<PathBuf, String> {
    if value.is_empty() {
        return Err("there is no path".to_owned());
    }
    Ok(PathBuf::from(value))
}

/// A duration that is not zero.
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

/// Bytes, with a suffix or without.
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
