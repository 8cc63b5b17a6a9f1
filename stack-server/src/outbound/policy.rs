//! Decides which addresses outbound requests may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::error::AddressRefusal;
use super::target::Target;

/// The addresses to which requests on behalf of API clients may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboundPolicy {
    /// Any address, over http or https.
    Any,
    /// Public addresses over https on the usual ports. This excludes the machine itself, its private networks, and
    /// the metadata services of clouds.
    Public,
}

/// The ports on which https is common.
const PUBLIC_PORTS: [u16; 2] = [443, 8443];

impl OutboundPolicy {
    /// Checks the parts of a target that are known before its name is resolved.
    ///
    /// # Errors
    ///
    /// Fails if the scheme, the port or the address is not allowed.
    pub(crate) fn allow(self, target: &Target) -> Result<(), AddressRefusal> {
        if self == Self::Any {
            return Ok(());
        }
        if !target.is_secure() {
            return Err(AddressRefusal::NotHttps);
        }
        if !PUBLIC_PORTS.contains(&target.port()) {
            return Err(AddressRefusal::Port(target.port()));
        }
        match target.host().parse::<IpAddr>() {
            Ok(address) => self.allow_address(address),
            Err(_) => Ok(()),
        }
    }

    /// Checks an address before the server connects to it.
    ///
    /// # Errors
    ///
    /// Fails if the address is not allowed.
    pub(crate) fn allow_address(self, address: IpAddr) -> Result<(), AddressRefusal> {
        if self == Self::Any || is_public(address) {
            return Ok(());
        }
        Err(AddressRefusal::NotPublic(address))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = match a {
        // "This network", private use, loopback, and everything from multicast to broadcast.
        0 | 10 | 127 | 224..=255 => true,
        // Carrier-grade NAT.
        100 => (64..128).contains(&b),
        // Link-local, which includes the metadata services of clouds.
        169 => b == 254,
        172 => (16..32).contains(&b),
        // Protocol assignments, documentation, 6to4 relays, private.
        192 => matches!((b, c), (0, 0 | 2) | (88, 99) | (168, _)),
        // Benchmarks and documentation.
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        _ => false,
    };
    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    let [a, b, ..] = address.segments();
    // Global unicast, except documentation, benchmarks, and ranges that embed IPv4 addresses (Teredo, 6to4).
    (0x2000..0x4000).contains(&a)
        && a != 0x2002
        && !(a == 0x2001 && (b < 0x200 || b == 0xdb8))
        && !(a == 0x3fff && b < 0x1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "203.0.113.9",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2002:7f00:1::",
            "2001:db8::1",
        ] {
            let address: IpAddr = text.parse().expect("an address");
            assert!(OutboundPolicy::Public.allow_address(address).is_err(), "{text}");
            assert!(OutboundPolicy::Any.allow_address(address).is_ok(), "{text}");
        }
        for text in
            ["1.1.1.1", "172.32.0.1", "100.128.0.1", "192.169.0.1", "2606:4700::1111", "::ffff:1.1.1.1"]
        {
            assert!(
                OutboundPolicy::Public.allow_address(text.parse().expect("an address")).is_ok(),
                "{text}"
            );
        }
    }

    #[test]
    fn the_public_policy_wants_https_on_its_ports() {
        let allowed =
            |url: &str| OutboundPolicy::Public.allow(&Target::parse(url).expect("a target")).is_ok();
        assert!(allowed("https://sink.example/x") && allowed("https://sink.example:8443"));
        for url in [
            "http://sink.example",
            "https://sink.example:22",
            "https://127.0.0.1",
            "https://[::1]",
            "https://[::ffff:10.0.0.1]/",
            "https://169.254.169.254/latest",
        ] {
            assert!(!allowed(url), "{url}");
        }
        assert!(OutboundPolicy::Any.allow(&Target::parse("http://127.0.0.1:1").expect("a target")).is_ok());
    }
}
