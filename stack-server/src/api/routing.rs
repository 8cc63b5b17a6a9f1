//! Finds the route of a request by its method and path.
//!
//! The routing table contains path templates such as `/{ledger}/accounts`. Each mount serves its routes below one or
//! more prefixes. If several templates match a path, the first one with the method of the request applies. A variable
//! segment matches any text that is not empty. `{ledger}` does not match the names that its prefix reserves. So
//! `/v2/stats` never belongs to a v1 ledger named `v2`.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::api::routes::{Mount, Route, routes};
use crate::http::error::Profile;
use crate::http::mount_path::MountPath;

/// The result of looking up a method and a path.
#[derive(Debug)]
pub(crate) enum Match<'a> {
    /// A route, the profile of its prefix, and the texts of its variable segments in order.
    Found { route: &'static Route, profile: Profile, variables: Vec<Cow<'a, str>> },
    /// The path has routes, but none with this method. Contains the methods for the header `Allow`.
    WrongMethod(String),
    /// No route has this path. Contains the body of the 404 response.
    NoSuchPath(&'static str),
}

/// Optional parts of the server. Each field is whether the operator has enabled the part and its routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnabledParts {
    /// Exporters and their pipelines.
    pub(crate) exporters: bool,
    /// The authorization server.
    pub(crate) authorization: bool,
}

impl EnabledParts {
    /// Returns whether a route is enabled.
    const fn include(self, route: &Route) -> bool {
        match route.mount {
            Mount::Auth => self.authorization,
            _ => self.exporters || !route.operation.is_of_exporters(),
        }
    }
}

/// The path of the generic connector API in the routing table.
const GENERIC: [&str; 2] = ["api", "generic"];

/// Converts the segments of a request's path to those of the routing table if the operator has moved the generic
/// connector API to another path. The default path of the API then has no route.
pub(crate) fn canonical_segments<'a>(
    mut segments: Vec<Cow<'a, str>>,
    mount: &MountPath,
) -> Vec<Cow<'a, str>> {
    if *mount == MountPath::default() {
        return segments;
    }
    let head = segments.get(..mount.segments().len());
    if head.is_some_and(|head| head == mount.segments()) {
        segments.splice(..mount.segments().len(), GENERIC.map(Cow::Borrowed));
    } else if segments.starts_with(&GENERIC.map(Cow::Borrowed)) {
        segments[1] = Cow::Borrowed("");
    }
    segments
}

/// Finds the route of a method and the decoded segments of a path. Ignores routes of disabled parts.
pub(crate) fn find<'a>(method: &str, segments: &[Cow<'a, str>], parts: EnabledParts) -> Match<'a> {
    let mut allowed: Vec<&str> = Vec::new();
    for (prefix, rest) in PREFIXES.iter().filter_map(|prefix| Some((prefix, prefix.rest(segments)?))) {
        for template in prefix.templates(rest.len()) {
            let Template { route, .. } = template;
            if !template.fits(rest, prefix.reserved) || !parts.include(route) {
                continue;
            }
            if route.method == method {
                let profile = prefix.profile;
                return Match::Found { route, profile, variables: template.variables(rest) };
            }
            if !allowed.contains(&route.method) {
                allowed.push(route.method);
            }
        }
    }
    if !allowed.is_empty() {
        allowed.sort_unstable();
        return Match::WrongMethod(allowed.join(", "));
    }
    Match::NoSuchPath(match segments {
        // In Formance's stack, the gateway handles paths below `/api` that belong to no service. Its text differs from
        // that of the ledger.
        [api, service, ..]
            if api == "api"
                && !matches!(&**service, "ledger" | "payments" | "generic")
                && !(service == "auth" && parts.authorization) =>
        {
            "Not Found"
        }
        [api] if api == "api" => "Not Found",
        _ => "404 page not found",
    })
}

/// Names that are not ledgers in paths of v2.
const RESERVED_V2: &[&str] = &["_"];
/// Names that are not ledgers in paths of v1 below `/api/ledger`. There `v2` begins the paths of v2.
const RESERVED_V1: &[&str] = &["v2", "_info", "_health", "_healthcheck", "_live"];
/// Names that are not ledgers in paths of v1 at the root, where v1 shares the first segment with all other routes.
const RESERVED_ROOT: &[&str] = &[
    "api",
    "v2",
    "_",
    "versions",
    "docs",
    "openapi.json",
    "openapi.yaml",
    "metrics",
    "console",
    "_info",
    "_health",
    "_healthcheck",
    "_live",
];

/// Returns the names that `{ledger}` cannot have below every prefix of a mount. One of the prefixes reserves them, or
/// has other routes at their paths.
pub(crate) fn reserved(mount: Mount) -> Vec<&'static str> {
    let lists: &[&[&str]] = match mount {
        Mount::LedgerV1 => &[RESERVED_V1, RESERVED_ROOT],
        _ => &[RESERVED_V2, &["_info", "_healthcheck"]],
    };
    let mut names = lists.concat();
    names.sort_unstable();
    names.dedup();
    names
}

/// A path prefix with the templates of the routes below it.
struct Prefix {
    segments: &'static [&'static str],
    profile: Profile,
    /// Names that `{ledger}` does not match here.
    reserved: &'static [&'static str],
    /// Templates indexed by their number of segments. Each list keeps the order of the routing table.
    by_length: Vec<Vec<Template>>,
}

/// The template of a route, split into its segments.
struct Template {
    route: &'static Route,
    segments: Vec<Segment>,
}

/// A segment of a template.
enum Segment {
    /// Matches this text only.
    Fixed(&'static str),
    /// The segment `{ledger}`. Matches any text that is neither empty nor reserved.
    Ledger,
    /// Any other variable. Matches any text that is not empty.
    Variable,
}

/// All prefixes, in the order in which [`find`] tries them.
static PREFIXES: LazyLock<[Prefix; 7]> = LazyLock::new(|| {
    [
        Prefix::new(&GENERIC, &[Mount::Generic], Profile::Stack, &[]),
        Prefix::new(&["api", "payments"], &[Mount::Payments], Profile::Stack, &[]),
        Prefix::new(&["v2"], &[Mount::LedgerV2], Profile::Ledger, RESERVED_V2),
        Prefix::new(&["api", "ledger", "v2"], &[Mount::LedgerV2], Profile::Stack, RESERVED_V2),
        Prefix::new(&["api", "ledger"], &[Mount::Service, Mount::LedgerV1], Profile::Stack, RESERVED_V1),
        Prefix::new(&["api", "auth"], &[Mount::Auth], Profile::Stack, &[]),
        Prefix::new(&[], &[Mount::Service, Mount::Gateway, Mount::LedgerV1], Profile::Ledger, RESERVED_ROOT),
    ]
});

impl Prefix {
    fn new(
        segments: &'static [&'static str],
        mounts: &[Mount],
        profile: Profile,
        reserved: &'static [&'static str],
    ) -> Self {
        let mut by_length: Vec<Vec<Template>> = Vec::new();
        for route in routes().iter().filter(|route| mounts.contains(&route.mount)) {
            let template = Template::new(route);
            let length = template.segments.len();
            if by_length.len() <= length {
                by_length.resize_with(length + 1, Vec::new);
            }
            by_length[length].push(template);
        }
        Self { segments, profile, reserved, by_length }
    }

    /// Returns the segments of a path after the prefix, or `None` if the path does not begin with it.
    fn rest<'p, 'a>(&self, path: &'p [Cow<'a, str>]) -> Option<&'p [Cow<'a, str>]> {
        let (head, rest) = path.split_at_checked(self.segments.len())?;
        (head == self.segments).then_some(rest)
    }

    /// Returns the templates with this number of segments.
    fn templates(&self, length: usize) -> &[Template] {
        self.by_length.get(length).map_or(&[], Vec::as_slice)
    }
}

impl Template {
    fn new(route: &'static Route) -> Self {
        let segments = route.template.split('/').filter(|segment| !segment.is_empty());
        let segments = segments.map(|segment| match segment {
            "{ledger}" => Segment::Ledger,
            variable if variable.starts_with('{') => Segment::Variable,
            fixed => Segment::Fixed(fixed),
        });
        Self { route, segments: segments.collect() }
    }

    /// Returns whether the template matches a path without its prefix. The caller chooses a template with as many
    /// segments.
    fn fits(&self, path: &[Cow<'_, str>], reserved: &[&str]) -> bool {
        self.segments.iter().zip(path).all(|(segment, text)| match segment {
            Segment::Fixed(fixed) => text == fixed,
            Segment::Ledger => !text.is_empty() && !reserved.contains(&text.as_ref()),
            Segment::Variable => !text.is_empty(),
        })
    }

    /// Returns the texts of a path at the variable segments of the template.
    fn variables<'a>(&self, path: &[Cow<'a, str>]) -> Vec<Cow<'a, str>> {
        let pairs = self.segments.iter().zip(path);
        pairs
            .filter(|(segment, _)| !matches!(segment, Segment::Fixed(_)))
            .map(|(_, text)| text.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations::{HealthForm, InfoForm, Operation, Payments as P, V1, V2};
    use crate::http::request::segments;
    use Operation as O;

    fn found(method: &str, path: &str) -> Result<(Operation, Profile, String), Cow<'static, str>> {
        match find(
            method,
            &segments(path).expect("no bad escapes"),
            EnabledParts { exporters: true, authorization: true },
        ) {
            Match::Found { route, profile, variables } => Ok((route.operation, profile, variables.join("|"))),
            Match::WrongMethod(allow) => Err(allow.into()),
            Match::NoSuchPath(text) => Err(text.into()),
        }
    }

    #[track_caller]
    fn check(method: &str, path: &str, operation: Operation, profile: Profile, variables: &str) {
        assert_eq!(found(method, path), Ok((operation, profile, variables.to_owned())), "{method} {path}");
    }

    #[test]
    fn a_path_finds_its_route_and_profile() {
        for (method, path, operation, profile, variables) in [
            ("GET", "/v2", O::V2(V2::ListLedgers), Profile::Ledger, ""),
            ("GET", "/v2/", O::V2(V2::ListLedgers), Profile::Ledger, ""),
            ("GET", "/api/ledger/v2/main", O::V2(V2::ReadLedger), Profile::Stack, "main"),
            ("GET", "/v2/_info", O::Info(InfoForm::Hybrid), Profile::Ledger, ""),
            ("GET", "/v2/main/_info", O::V2(V2::LedgerInfo), Profile::Ledger, "main"),
            ("POST", "/v2/_info", O::V2(V2::CreateLedger), Profile::Ledger, "_info"),
            (
                "DELETE",
                "/v2/m/accounts/a%3Ab/metadata/x%2Fy/",
                O::V2(V2::DeleteAccountMetadata),
                Profile::Ledger,
                "m|a:b|x/y",
            ),
            ("GET", "/_info", O::Info(InfoForm::Wrapped), Profile::Ledger, ""),
            ("GET", "/api/ledger/_/info", O::Info(InfoForm::Bare), Profile::Stack, ""),
            ("GET", "/versions", O::Versions, Profile::Ledger, ""),
            ("GET", "/main/stats", O::V1(V1::Stats), Profile::Ledger, "main"),
            ("GET", "/api/ledger/main/stats", O::V1(V1::Stats), Profile::Stack, "main"),
            ("GET", "/main/_info", O::V1(V1::LedgerInfo), Profile::Ledger, "main"),
            ("POST", "/m/transactions/batch", O::V1(V1::CreateBatch), Profile::Ledger, "m"),
            ("GET", "/m/transactions/batch", O::V1(V1::ReadTransaction), Profile::Ledger, "m|batch"),
            ("GET", "/m/accounts/a%3Ab", O::V1(V1::ReadAccount), Profile::Ledger, "m|a:b"),
            // A name that only the root reserves is a ledger below the other prefixes.
            ("GET", "/api/ledger/versions/stats", O::V1(V1::Stats), Profile::Stack, "versions"),
            ("GET", "/v2/v2/stats", O::V2(V2::LedgerStats), Profile::Ledger, "v2"),
            ("GET", "/_live", O::Health(HealthForm::Alive), Profile::Ledger, ""),
            ("GET", "/api/ledger/_health", O::Health(HealthForm::Checks), Profile::Stack, ""),
            ("GET", "/api/payments/_info", O::Info(InfoForm::Release), Profile::Stack, ""),
        ] {
            check(method, path, operation, profile, variables);
        }
    }

    #[test]
    fn a_path_of_connectors_finds_its_route() {
        for (method, path, operation, variables) in [
            ("POST", "stripe/transfers", P::StripeTransfer, ""),
            ("POST", "STRIPE/transfers", P::CreateTransfer, "STRIPE"),
            ("GET", "WISE/config", P::ReadConfig, "WISE"),
            ("GET", "WISE/x/config", P::ReadConfig, "WISE|x"),
            ("GET", "WISE/tasks/x", P::ReadTask, "WISE|x"),
            ("DELETE", "WISE/x", P::Uninstall, "WISE|x"),
        ] {
            let path = format!("/api/payments/connectors/{path}");
            check(method, &path, O::Payments(operation), Profile::Stack, variables);
        }
    }

    #[test]
    fn refuses_unknown_paths_and_methods() {
        for (method, path, answer) in [
            ("GET", "/nosuch", "404 page not found"),
            ("POST", "/", "GET"),
            ("POST", "/v2/_", "404 page not found"),
            ("GET", "/v2//accounts", "404 page not found"),
            ("GET", "/v2/main/accounts/a/b", "404 page not found"),
            ("GET", "/api/ledger/v2/main/nosuch", "404 page not found"),
            ("GET", "/api/nosuch/x", "Not Found"),
            ("GET", "/api/stats", "Not Found"),
            ("GET", "/metrics/stats", "404 page not found"),
            ("GET", "/v2/stats/x", "404 page not found"),
            ("GET", "/api/ledger/_live/stats", "404 page not found"),
            ("GET", "/api/payments/nothing", "404 page not found"),
            ("PUT", "/api/payments/payments", "GET, POST"),
            ("PATCH", "/main/mapping", "GET, PUT"),
            ("GET", "/api/versions", "Not Found"),
            ("PATCH", "/v2/main/transactions", "GET, HEAD, POST"),
            ("DELETE", "/v2/main", "GET, POST"),
        ] {
            assert_eq!(found(method, path), Err(answer.into()), "{method} {path}");
        }
    }

    #[test]
    fn every_route_is_found_below_its_prefixes() {
        for route in routes() {
            for (prefix, profile) in route.mount.prefixes() {
                let path = format!("{prefix}{}", route.template).replace(['{', '}'], "");
                let (operation, found_profile, _) = found(route.method, &path).expect(&path);
                assert_eq!(
                    (operation, found_profile),
                    (route.operation, *profile),
                    "{} {path}",
                    route.method
                );
            }
        }
    }
}
