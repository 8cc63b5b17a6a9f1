//! The routing table.
//!
//! The first route that matches a path handles it ([`routing`](crate::api::routing)), so a fixed segment must precede a
//! variable one. Within a group of operations, the document of the API and its page keep the order of the rows.

use crate::api::operations::{
    Auth, DocumentForm, Generic, HealthForm, InfoForm, Operation, Payments, V1, V2,
};
use crate::auth::{Scope, Service as Of};
use crate::http::error::Profile;
use crate::limits::{AUTH_BODY_BYTES_MAX, BODY_BYTES_MAX, FILTER_BODY_BYTES_MAX};

/// The prefixes of a group of routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mount {
    /// The root, as in the stand-alone server of v1, and `/api/ledger`.
    LedgerV1,
    /// `/v2`, and `/api/ledger/v2` as in the gateway of the stack.
    LedgerV2,
    /// The root, and `/api/ledger`.
    Service,
    /// `/api/payments`, as in the gateway of the stack.
    Payments,
    /// `/api/generic`: the generic connector API, for other stacks.
    Generic,
    /// Only the root: the routes that the gateway itself handles.
    Gateway,
    /// `/api/auth`: the authorization server.
    Auth,
}

impl Mount {
    /// Returns the prefixes with their profiles.
    pub(crate) const fn prefixes(self) -> &'static [(&'static str, Profile)] {
        match self {
            Self::LedgerV1 | Self::Service => &[("", Profile::Ledger), ("/api/ledger", Profile::Stack)],
            Self::LedgerV2 => &[("/v2", Profile::Ledger), ("/api/ledger/v2", Profile::Stack)],
            Self::Payments => &[("/api/payments", Profile::Stack)],
            Self::Generic => &[("/api/generic", Profile::Stack)],
            Self::Gateway => &[("", Profile::Ledger)],
            Self::Auth => &[("/api/auth", Profile::Stack)],
        }
    }

    /// Returns the prefixes without their profiles.
    pub fn paths(self) -> impl Iterator<Item = &'static str> {
        self.prefixes().iter().map(|(prefix, _)| *prefix)
    }

    /// Returns the service whose scopes the routes require.
    pub const fn service(self) -> Of {
        match self {
            Self::LedgerV1 | Self::LedgerV2 | Self::Service | Self::Gateway => Of::Ledger,
            Self::Payments | Self::Generic => Of::Payments,
            Self::Auth => Of::Auth,
        }
    }
}

/// A row of the routing table.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// The HTTP method.
    pub method: &'static str,
    /// The mount, which determines the prefixes.
    pub mount: Mount,
    /// The path below the mount, with `{…}` for variable segments.
    pub template: &'static str,
    /// The required scope.
    pub scope: Scope,
    /// Maximum size of the body in bytes.
    pub body_limit: usize,
    pub(crate) operation: Operation,
}

impl Route {
    /// Returns whether the operation may change something. Requests for tokens use POST, even for clients that only
    /// read.
    pub(crate) fn may_write(&self) -> bool {
        !matches!(self.method, "GET" | "HEAD")
            && !matches!(self.operation, Operation::Auth(Auth::Token | Auth::Introspect))
    }

    /// Returns the names of the variable segments in order.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &'static str> {
        self.template.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }
}

use Mount::{Gateway, LedgerV1, LedgerV2, Service};
use Operation as O;
use Operation::Auth as A;
use Payments as P;
use Scope::{Open, Read, Write};

const fn row(
    method: &'static str,
    mount: Mount,
    template: &'static str,
    scope: Scope,
    body_limit: usize,
    operation: Operation,
) -> Route {
    Route { method, mount, template, scope, body_limit, operation }
}

/// Limit for unused bodies. The server reads and ignores them up to this size, so that the connection remains usable.
const UNUSED: usize = FILTER_BODY_BYTES_MAX;
const FILTER: usize = FILTER_BODY_BYTES_MAX;
const BODY: usize = BODY_BYTES_MAX;
const SMALL: usize = AUTH_BODY_BYTES_MAX;
/// Limit for a body that the operation reads as a stream.
pub(crate) const STREAM: usize = usize::MAX;

#[rustfmt::skip]
static ROUTES: &[Route] = &[
    row("GET",    LedgerV2, "/_info",        Open, UNUSED, O::Info(InfoForm::Hybrid)),
    row("GET",    LedgerV2, "/_healthcheck", Open, UNUSED, O::Health(HealthForm::Alive)),

    row("POST",   LedgerV2, "/{ledger}",                Write, BODY,   O::V2(V2::CreateLedger)),
    row("GET",    LedgerV2, "/{ledger}",                Read,  UNUSED, O::V2(V2::ReadLedger)),
    row("GET",    LedgerV2, "/",                        Read,  FILTER, O::V2(V2::ListLedgers)),
    row("GET",    LedgerV2, "/{ledger}/_info",          Read,  UNUSED, O::V2(V2::LedgerInfo)),
    row("GET",    LedgerV2, "/{ledger}/stats",          Read,  UNUSED, O::V2(V2::LedgerStats)),
    row("PUT",    LedgerV2, "/{ledger}/metadata",       Write, BODY,   O::V2(V2::SetLedgerMetadata)),
    row("DELETE", LedgerV2, "/{ledger}/metadata/{key}", Write, UNUSED, O::V2(V2::DeleteLedgerMetadata)),

    row("POST",   LedgerV2, "/{ledger}/transactions",                    Write, BODY,   O::V2(V2::CreateTransaction)),
    row("GET",    LedgerV2, "/{ledger}/transactions",                    Read,  FILTER, O::V2(V2::ListTransactions)),
    row("HEAD",   LedgerV2, "/{ledger}/transactions",                    Read,  FILTER, O::V2(V2::CountTransactions)),
    row("GET",    LedgerV2, "/{ledger}/transactions/{id}",               Read,  UNUSED, O::V2(V2::ReadTransaction)),
    row("POST",   LedgerV2, "/{ledger}/transactions/{id}/revert",        Write, BODY,   O::V2(V2::RevertTransaction)),
    row("POST",   LedgerV2, "/{ledger}/transactions/{id}/metadata",      Write, BODY,   O::V2(V2::SetTransactionMetadata)),
    row("DELETE", LedgerV2, "/{ledger}/transactions/{id}/metadata/{key}", Write, UNUSED, O::V2(V2::DeleteTransactionMetadata)),
    row("POST",   LedgerV2, "/{ledger}/_bulk",                           Write, BODY,   O::V2(V2::Bulk)),
    row("GET",    LedgerV2, "/{ledger}/_explain/transactions",           Read,  FILTER, O::V2(V2::ExplainTransactions)),

    row("GET",    LedgerV2, "/{ledger}/accounts",                        Read,  FILTER, O::V2(V2::ListAccounts)),
    row("HEAD",   LedgerV2, "/{ledger}/accounts",                        Read,  FILTER, O::V2(V2::CountAccounts)),
    row("GET",    LedgerV2, "/{ledger}/accounts/{address}",              Read,  UNUSED, O::V2(V2::ReadAccount)),
    row("GET",    LedgerV2, "/{ledger}/aggregate/balances",              Read,  FILTER, O::V2(V2::AggregatedBalances)),
    row("GET",    LedgerV2, "/{ledger}/volumes",                         Read,  FILTER, O::V2(V2::ListVolumes)),
    row("POST",   LedgerV2, "/{ledger}/accounts/{address}/metadata",     Write, BODY,   O::V2(V2::SetAccountMetadata)),
    row("DELETE", LedgerV2, "/{ledger}/accounts/{address}/metadata/{key}", Write, UNUSED, O::V2(V2::DeleteAccountMetadata)),
    row("GET",    LedgerV2, "/{ledger}/_explain/accounts",               Read,  FILTER, O::V2(V2::ExplainAccounts)),
    row("GET",    LedgerV2, "/{ledger}/_explain/volumes",                Read,  FILTER, O::V2(V2::ExplainVolumes)),
    row("GET",    LedgerV2, "/{ledger}/_explain/aggregate/balances",     Read,  FILTER, O::V2(V2::ExplainBalances)),

    row("GET",    LedgerV2, "/{ledger}/logs",          Read,  FILTER, O::V2(V2::ListLogs)),
    row("POST",   LedgerV2, "/{ledger}/logs/export",   Write, UNUSED, O::V2(V2::ExportLogs)),
    row("POST",   LedgerV2, "/{ledger}/logs/import",   Write, STREAM, O::V2(V2::ImportLogs)),
    row("GET",    LedgerV2, "/{ledger}/_events",       Read,  UNUSED, O::V2(V2::StreamEvents)),
    row("GET",    LedgerV2, "/{ledger}/_explain/logs", Read,  FILTER, O::V2(V2::ExplainLogs)),

    row("POST",   LedgerV2, "/{ledger}/schemas/{version}",   Write, BODY,   O::V2(V2::InsertSchema)),
    row("GET",    LedgerV2, "/{ledger}/schemas/{version}",   Read,  UNUSED, O::V2(V2::ReadSchema)),
    row("GET",    LedgerV2, "/{ledger}/schemas",             Read,  FILTER, O::V2(V2::ListSchemas)),
    row("POST",   LedgerV2, "/{ledger}/queries/{query}/run", Write, FILTER, O::V2(V2::RunQuery)),

    row("DELETE", LedgerV2, "/_/buckets/{bucket}",         Write, UNUSED, O::V2(V2::DeleteBucket)),
    row("POST",   LedgerV2, "/_/buckets/{bucket}/restore", Write, UNUSED, O::V2(V2::RestoreBucket)),

    row("POST",   LedgerV2, "/_/exporters",                           Write, BODY,   O::V2(V2::CreateExporter)),
    row("GET",    LedgerV2, "/_/exporters",                           Read,  UNUSED, O::V2(V2::ListExporters)),
    row("GET",    LedgerV2, "/_/exporters/{exporterID}",              Read,  UNUSED, O::V2(V2::ReadExporter)),
    row("PUT",    LedgerV2, "/_/exporters/{exporterID}",              Write, BODY,   O::V2(V2::UpdateExporter)),
    row("DELETE", LedgerV2, "/_/exporters/{exporterID}",              Write, UNUSED, O::V2(V2::DeleteExporter)),
    row("POST",   LedgerV2, "/{ledger}/pipelines",                    Write, BODY,   O::V2(V2::CreatePipeline)),
    row("GET",    LedgerV2, "/{ledger}/pipelines",                    Read,  UNUSED, O::V2(V2::ListPipelines)),
    row("GET",    LedgerV2, "/{ledger}/pipelines/{pipelineID}",       Read,  UNUSED, O::V2(V2::ReadPipeline)),
    row("DELETE", LedgerV2, "/{ledger}/pipelines/{pipelineID}",       Write, UNUSED, O::V2(V2::DeletePipeline)),
    row("POST",   LedgerV2, "/{ledger}/pipelines/{pipelineID}/start", Write, UNUSED, O::V2(V2::StartPipeline)),
    row("POST",   LedgerV2, "/{ledger}/pipelines/{pipelineID}/stop",  Write, UNUSED, O::V2(V2::StopPipeline)),
    row("POST",   LedgerV2, "/{ledger}/pipelines/{pipelineID}/reset", Write, UNUSED, O::V2(V2::ResetPipeline)),

    row("GET",    Service,  "/_info",          Open, UNUSED, O::Info(InfoForm::Wrapped)),
    row("GET",    Service,  "/_healthcheck",   Open, UNUSED, O::Health(HealthForm::Checks)),
    row("GET",    Service,  "/_/info",         Open, UNUSED, O::Info(InfoForm::Bare)),
    row("GET",    Service,  "/_/healthcheck",  Open, UNUSED, O::Health(HealthForm::Checks)),
    row("GET",    Service,  "/_health",        Open, UNUSED, O::Health(HealthForm::Checks)),
    row("GET",    Service,  "/_live",          Open, UNUSED, O::Health(HealthForm::Alive)),
    row("GET",    Gateway,  "/",               Open, UNUSED, O::Document(DocumentForm::Link)),
    row("GET",    Gateway,  "/versions",       Open, UNUSED, O::Versions),
    row("GET",    Gateway,  "/healthz",        Open, UNUSED, O::Health(HealthForm::Ready)),
    row("GET",    Gateway,  "/openapi.json",   Open, UNUSED, O::Document(DocumentForm::Json)),
    row("GET",    Gateway,  "/openapi.yaml",   Open, UNUSED, O::Document(DocumentForm::Yaml)),
    row("GET",    Gateway,  "/docs",           Open, UNUSED, O::Document(DocumentForm::Page)),
    row("GET",    Service,  "/swagger.json",   Open, UNUSED, O::Document(DocumentForm::Json)),
    row("GET",    Service,  "/swagger.yaml",   Open, UNUSED, O::Document(DocumentForm::Yaml)),

    row("GET",    Mount::Auth, "/_info",                                   Open,  UNUSED, A(Auth::Info)),
    row("GET",    Mount::Auth, "/_healthcheck",                            Open,  UNUSED, A(Auth::Health)),
    row("GET",    Mount::Auth, "/_health",                                 Open,  UNUSED, A(Auth::Health)),
    row("GET",    Mount::Auth, "/_live",                                   Open,  UNUSED, O::Health(HealthForm::Alive)),
    row("GET",    Mount::Auth, "/healthz",                                 Open,  UNUSED, A(Auth::Ready)),
    row("GET",    Mount::Auth, "/ready",                                   Open,  UNUSED, A(Auth::Ready)),
    row("POST",   Mount::Auth, "/clients",                                 Write, SMALL,  A(Auth::CreateClient)),
    row("GET",    Mount::Auth, "/clients",                                 Read,  UNUSED, A(Auth::ListClients)),
    row("GET",    Mount::Auth, "/clients/{clientId}",                      Read,  UNUSED, A(Auth::ReadClient)),
    row("PUT",    Mount::Auth, "/clients/{clientId}",                      Write, SMALL,  A(Auth::UpdateClient)),
    row("DELETE", Mount::Auth, "/clients/{clientId}",                      Write, UNUSED, A(Auth::DeleteClient)),
    row("POST",   Mount::Auth, "/clients/{clientId}/secrets",              Write, SMALL,  A(Auth::CreateSecret)),
    row("DELETE", Mount::Auth, "/clients/{clientId}/secrets/{secretId}",   Write, UNUSED, A(Auth::DeleteSecret)),
    row("PUT",    Mount::Auth, "/clients/{clientId}/scopes/{scopeId}",     Write, UNUSED, A(Auth::AddScopeToClient)),
    row("DELETE", Mount::Auth, "/clients/{clientId}/scopes/{scopeId}",     Write, UNUSED, A(Auth::DeleteScopeFromClient)),
    row("POST",   Mount::Auth, "/scopes",                                  Write, SMALL,  A(Auth::CreateScope)),
    row("GET",    Mount::Auth, "/scopes",                                  Read,  UNUSED, A(Auth::ListScopes)),
    row("GET",    Mount::Auth, "/scopes/{scopeId}",                        Read,  UNUSED, A(Auth::ReadScope)),
    row("PUT",    Mount::Auth, "/scopes/{scopeId}",                        Write, SMALL,  A(Auth::UpdateScope)),
    row("DELETE", Mount::Auth, "/scopes/{scopeId}",                        Write, UNUSED, A(Auth::DeleteScope)),
    row("PUT",    Mount::Auth, "/scopes/{scopeId}/transient/{transientScopeId}",    Write, UNUSED, A(Auth::AddTransientScope)),
    row("DELETE", Mount::Auth, "/scopes/{scopeId}/transient/{transientScopeId}",    Write, UNUSED, A(Auth::DeleteTransientScope)),
    row("GET",    Mount::Auth, "/users",                                   Read,  UNUSED, A(Auth::ListUsers)),
    row("GET",    Mount::Auth, "/users/{userId}",                          Read,  UNUSED, A(Auth::ReadUser)),
    row("GET",    Mount::Auth, "/.well-known/openid-configuration",        Open,  UNUSED, A(Auth::Configuration)),
    row("GET",    Mount::Auth, "/keys",                                    Open,  UNUSED, A(Auth::Keys)),
    row("POST",   Mount::Auth, "/oauth/token",                             Open,  SMALL,  A(Auth::Token)),
    row("GET",    Mount::Auth, "/oauth/token",                             Open,  SMALL,  A(Auth::Token)),
    row("POST",   Mount::Auth, "/oauth/introspect",                        Open,  SMALL,  A(Auth::Introspect)),
    row("GET",    Mount::Auth, "/oauth/introspect",                        Open,  SMALL,  A(Auth::Introspect)),
    row("POST",   Mount::Auth, "/revoke",                                  Open,  SMALL,  A(Auth::Revoke)),
    row("GET",    Mount::Auth, "/authorize",                               Open,  SMALL,  A(Auth::Authorize)),
    row("POST",   Mount::Auth, "/authorize",                               Open,  SMALL,  A(Auth::Authorize)),
    row("GET",    Mount::Auth, "/authorize/callback",                      Open,  UNUSED, A(Auth::Callback)),
    row("GET",    Mount::Auth, "/userinfo",                                Open,  SMALL,  A(Auth::UserInfo)),
    row("POST",   Mount::Auth, "/userinfo",                                Open,  SMALL,  A(Auth::UserInfo)),
    row("GET",    Mount::Auth, "/end_session",                             Open,  SMALL,  A(Auth::EndSession)),
    row("POST",   Mount::Auth, "/end_session",                             Open,  SMALL,  A(Auth::EndSession)),
    row("GET",    Mount::Auth, "/logged-out",                              Open,  UNUSED, A(Auth::LoggedOut)),
    row("POST",   Mount::Auth, "/keys/rotate",                             Write, UNUSED, A(Auth::RotateKeys)),
    row("DELETE", Mount::Auth, "/keys/{keyId}",                            Write, UNUSED, A(Auth::RevokeKey)),

    row("POST",   LedgerV1, "/{ledger}/transactions",                    Write, BODY,   O::V1(V1::CreateTransaction)),
    row("HEAD",   LedgerV1, "/{ledger}/transactions",                    Read,  UNUSED, O::V1(V1::CountTransactions)),
    row("GET",    LedgerV1, "/{ledger}/transactions",                    Read,  UNUSED, O::V1(V1::ListTransactions)),
    row("POST",   LedgerV1, "/{ledger}/transactions/batch",              Write, BODY,   O::V1(V1::CreateBatch)),
    row("GET",    LedgerV1, "/{ledger}/transactions/{txid}",             Read,  UNUSED, O::V1(V1::ReadTransaction)),
    row("POST",   LedgerV1, "/{ledger}/transactions/{txid}/revert",      Write, BODY,   O::V1(V1::RevertTransaction)),
    row("POST",   LedgerV1, "/{ledger}/transactions/{txid}/metadata",    Write, BODY,   O::V1(V1::SetTransactionMetadata)),
    row("DELETE", LedgerV1, "/{ledger}/transactions/{txid}/metadata/{key}", Write, UNUSED, O::V1(V1::DeleteTransactionMetadata)),
    row("POST",   LedgerV1, "/{ledger}/script",                          Write, BODY,   O::V1(V1::RunScript)),

    row("HEAD",   LedgerV1, "/{ledger}/accounts",                        Read,  UNUSED, O::V1(V1::CountAccounts)),
    row("GET",    LedgerV1, "/{ledger}/accounts",                        Read,  UNUSED, O::V1(V1::ListAccounts)),
    row("GET",    LedgerV1, "/{ledger}/accounts/{address}",              Read,  UNUSED, O::V1(V1::ReadAccount)),
    row("POST",   LedgerV1, "/{ledger}/accounts/{address}/metadata",     Write, BODY,   O::V1(V1::SetAccountMetadata)),
    row("DELETE", LedgerV1, "/{ledger}/accounts/{address}/metadata/{key}", Write, UNUSED, O::V1(V1::DeleteAccountMetadata)),
    row("GET",    LedgerV1, "/{ledger}/balances",                        Read,  UNUSED, O::V1(V1::ListBalances)),
    row("GET",    LedgerV1, "/{ledger}/aggregate/balances",              Read,  UNUSED, O::V1(V1::AggregatedBalances)),

    row("GET",    LedgerV1, "/{ledger}/logs",    Read,  UNUSED, O::V1(V1::ListLogs)),
    row("GET",    LedgerV1, "/{ledger}/stats",   Read,  UNUSED, O::V1(V1::Stats)),
    row("GET",    LedgerV1, "/{ledger}/_info",   Read,  UNUSED, O::V1(V1::LedgerInfo)),
    row("GET",    LedgerV1, "/{ledger}/mapping", Read,  UNUSED, O::V1(V1::ReadMapping)),
    row("PUT",    LedgerV1, "/{ledger}/mapping", Write, BODY,   O::V1(V1::UpdateMapping)),

    row("GET",    Mount::Payments, "/_info",        Open, UNUSED, O::Info(InfoForm::Release)),
    row("GET",    Mount::Payments, "/_live",        Open, UNUSED, O::Health(HealthForm::Alive)),
    row("GET",    Mount::Payments, "/_health",      Open, UNUSED, O::Health(HealthForm::Checks)),
    row("GET",    Mount::Payments, "/_healthcheck", Open, UNUSED, O::Health(HealthForm::Checks)),

    row("GET",    Mount::Payments, "/payments",                        Read,  FILTER, O::Payments(P::ListPayments)),
    row("POST",   Mount::Payments, "/payments",                        Write, BODY,   O::Payments(P::CreatePayment)),
    row("GET",    Mount::Payments, "/payments/{paymentId}",            Read,  UNUSED, O::Payments(P::ReadPayment)),
    row("PATCH",  Mount::Payments, "/payments/{paymentId}/metadata",   Write, BODY,   O::Payments(P::SetPaymentMetadata)),
    row("GET",    Mount::Payments, "/payments/{paymentId}/_explain",   Read,  UNUSED, O::Payments(P::ExplainPayment)),
    row("GET",    Mount::Payments, "/accounts",                        Read,  FILTER, O::Payments(P::ListAccounts)),
    row("POST",   Mount::Payments, "/accounts",                        Write, BODY,   O::Payments(P::CreateAccount)),
    row("GET",    Mount::Payments, "/accounts/{accountId}",            Read,  UNUSED, O::Payments(P::ReadAccount)),
    row("GET",    Mount::Payments, "/accounts/{accountId}/balances",   Read,  UNUSED, O::Payments(P::ListBalances)),

    row("POST",   Mount::Payments, "/bank-accounts",                          Write, BODY,   O::Payments(P::CreateBankAccount)),
    row("GET",    Mount::Payments, "/bank-accounts",                          Read,  FILTER, O::Payments(P::ListBankAccounts)),
    row("GET",    Mount::Payments, "/bank-accounts/{bankAccountId}",          Read,  UNUSED, O::Payments(P::ReadBankAccount)),
    row("POST",   Mount::Payments, "/bank-accounts/{bankAccountId}/forward",  Write, BODY,   O::Payments(P::ForwardBankAccount)),
    row("PATCH",  Mount::Payments, "/bank-accounts/{bankAccountId}/metadata", Write, BODY,   O::Payments(P::SetBankAccountMetadata)),

    row("POST",   Mount::Payments, "/transfer-initiations",                      Write, BODY,   O::Payments(P::CreateInitiation)),
    row("GET",    Mount::Payments, "/transfer-initiations",                      Read,  FILTER, O::Payments(P::ListInitiations)),
    row("GET",    Mount::Payments, "/transfer-initiations/{transferId}",         Read,  UNUSED, O::Payments(P::ReadInitiation)),
    row("DELETE", Mount::Payments, "/transfer-initiations/{transferId}",         Write, UNUSED, O::Payments(P::DeleteInitiation)),
    row("POST",   Mount::Payments, "/transfer-initiations/{transferId}/status",  Write, BODY,   O::Payments(P::SetInitiationStatus)),
    row("POST",   Mount::Payments, "/transfer-initiations/{transferId}/retry",   Write, UNUSED, O::Payments(P::RetryInitiation)),
    row("POST",   Mount::Payments, "/transfer-initiations/{transferId}/reverse", Write, BODY,   O::Payments(P::ReverseInitiation)),

    row("POST",   Mount::Payments, "/pools",                                Write, BODY,   O::Payments(P::CreatePool)),
    row("GET",    Mount::Payments, "/pools",                                Read,  FILTER, O::Payments(P::ListPools)),
    row("GET",    Mount::Payments, "/pools/{poolId}",                       Read,  UNUSED, O::Payments(P::ReadPool)),
    row("DELETE", Mount::Payments, "/pools/{poolId}",                       Write, UNUSED, O::Payments(P::DeletePool)),
    row("POST",   Mount::Payments, "/pools/{poolId}/accounts",              Write, BODY,   O::Payments(P::AddPoolAccount)),
    row("DELETE", Mount::Payments, "/pools/{poolId}/accounts/{accountId}",  Write, UNUSED, O::Payments(P::RemovePoolAccount)),
    row("GET",    Mount::Payments, "/pools/{poolId}/balances",              Read,  UNUSED, O::Payments(P::PoolBalances)),

    row("GET",    Mount::Payments, "/connectors",                           Read,  UNUSED, O::Payments(P::ListConnectors)),
    row("GET",    Mount::Payments, "/connectors/configs",                   Read,  UNUSED, O::Payments(P::ListConfigs)),
    row("POST",   Mount::Payments, "/connectors/{connector}",               Write, BODY,   O::Payments(P::Install)),
    row("DELETE", Mount::Payments, "/connectors/{connector}",               Write, UNUSED, O::Payments(P::Uninstall)),
    row("GET",    Mount::Payments, "/connectors/{connector}/config",        Read,  UNUSED, O::Payments(P::ReadConfig)),
    row("POST",   Mount::Payments, "/connectors/{connector}/reset",         Write, UNUSED, O::Payments(P::Reset)),
    row("GET",    Mount::Payments, "/connectors/{connector}/tasks",         Read,  UNUSED, O::Payments(P::ListTasks)),
    row("GET",    Mount::Payments, "/connectors/{connector}/tasks/{taskId}", Read, UNUSED, O::Payments(P::ReadTask)),
    // The route with the lower-case name is a separate, older operation.
    row("POST",   Mount::Payments, "/connectors/stripe/transfers",          Write, BODY,   O::Payments(P::StripeTransfer)),
    row("POST",   Mount::Payments, "/connectors/{connector}/transfers",     Write, BODY,   O::Payments(P::CreateTransfer)),
    row("GET",    Mount::Payments, "/connectors/{connector}/transfers",     Read,  UNUSED, O::Payments(P::ListTransfers)),
    row("DELETE", Mount::Payments, "/connectors/{connector}/{connectorId}", Write, UNUSED, O::Payments(P::Uninstall)),
    row("GET",    Mount::Payments, "/connectors/{connector}/{connectorId}/config", Read, UNUSED, O::Payments(P::ReadConfig)),
    row("POST",   Mount::Payments, "/connectors/{connector}/{connectorId}/config", Write, BODY,  O::Payments(P::UpdateConfig)),
    row("POST",   Mount::Payments, "/connectors/{connector}/{connectorId}/reset", Write, UNUSED, O::Payments(P::Reset)),
    row("GET",    Mount::Payments, "/connectors/{connector}/{connectorId}/tasks", Read, UNUSED,  O::Payments(P::ListTasks)),
    row("GET",    Mount::Payments, "/connectors/{connector}/{connectorId}/tasks/{taskId}", Read, UNUSED, O::Payments(P::ReadTask)),
    row("GET",    Mount::Payments, "/connectors/{connector}/{connectorId}/postings", Read, UNUSED, O::Payments(P::ReadPostingRule)),
    row("PUT",    Mount::Payments, "/connectors/{connector}/{connectorId}/postings", Write, BODY, O::Payments(P::SetPostingRule)),
    row("DELETE", Mount::Payments, "/connectors/{connector}/{connectorId}/postings", Write, UNUSED, O::Payments(P::DeletePostingRule)),
    row("POST",   Mount::Payments, "/connectors/{connector}/{connectorId}/postings/run", Write, UNUSED, O::Payments(P::RunPostings)),

    row("GET",    Mount::Generic,  "/accounts",                      Read, UNUSED, O::Generic(Generic::Accounts)),
    row("GET",    Mount::Generic,  "/accounts/{accountId}/balances", Read, UNUSED, O::Generic(Generic::Balances)),
    row("GET",    Mount::Generic,  "/beneficiaries",                 Read, UNUSED, O::Generic(Generic::Beneficiaries)),
    row("GET",    Mount::Generic,  "/transactions",                  Read, UNUSED, O::Generic(Generic::Transactions)),
];

/// Returns all routes in the order of matching.
pub fn routes() -> &'static [Route] {
    ROUTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_need_no_more_than_read_and_writes_need_write() {
        for route in ROUTES.iter().filter(|route| route.scope != Open) {
            let expected = if matches!(route.method, "GET" | "HEAD") { Read } else { Write };
            assert_eq!(route.scope, expected, "{} {}", route.method, route.template);
        }
    }
}
