//! The operations of the API, grouped by the part of the API that handles them.

/// The operation of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    V1(V1),
    V2(V2),
    Auth(Auth),
    Payments(Payments),
    Generic(Generic),
    Info(InfoForm),
    Health(HealthForm),
    Versions,
    Document(DocumentForm),
}

/// An operation of the v1 ledger API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum V1 {
    LedgerInfo,
    Stats,
    ListAccounts,
    CountAccounts,
    ReadAccount,
    SetAccountMetadata,
    DeleteAccountMetadata,
    ListTransactions,
    CountTransactions,
    CreateTransaction,
    CreateBatch,
    ReadTransaction,
    RevertTransaction,
    SetTransactionMetadata,
    DeleteTransactionMetadata,
    RunScript,
    ReadMapping,
    UpdateMapping,
    ListBalances,
    AggregatedBalances,
    ListLogs,
}

/// An operation of the v2 ledger API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum V2 {
    ListLedgers,
    CreateLedger,
    ReadLedger,
    SetLedgerMetadata,
    DeleteLedgerMetadata,
    LedgerInfo,
    LedgerStats,
    Bulk,
    ListAccounts,
    CountAccounts,
    ReadAccount,
    SetAccountMetadata,
    DeleteAccountMetadata,
    ListTransactions,
    CountTransactions,
    CreateTransaction,
    ReadTransaction,
    RevertTransaction,
    SetTransactionMetadata,
    DeleteTransactionMetadata,
    AggregatedBalances,
    ListVolumes,
    ListLogs,
    ExportLogs,
    ImportLogs,
    StreamEvents,
    ListExporters,
    CreateExporter,
    ReadExporter,
    UpdateExporter,
    DeleteExporter,
    ListPipelines,
    CreatePipeline,
    ReadPipeline,
    DeletePipeline,
    StartPipeline,
    StopPipeline,
    ResetPipeline,
    InsertSchema,
    ReadSchema,
    ListSchemas,
    RunQuery,
    DeleteBucket,
    RestoreBucket,
    ExplainAccounts,
    ExplainTransactions,
    ExplainVolumes,
    ExplainBalances,
    ExplainLogs,
}

/// An operation of the authorization server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    Info,
    Health,
    Ready,
    ListClients,
    CreateClient,
    ReadClient,
    UpdateClient,
    DeleteClient,
    CreateSecret,
    DeleteSecret,
    AddScopeToClient,
    DeleteScopeFromClient,
    ListScopes,
    CreateScope,
    ReadScope,
    UpdateScope,
    DeleteScope,
    AddTransientScope,
    DeleteTransientScope,
    ListUsers,
    ReadUser,
    RotateKeys,
    RevokeKey,
    Configuration,
    Keys,
    Token,
    Introspect,
    Revoke,
    Authorize,
    Callback,
    UserInfo,
    EndSession,
    LoggedOut,
}

/// An operation of the generic connector API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generic {
    Accounts,
    Balances,
    Beneficiaries,
    Transactions,
}

/// An operation of the payments API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "payments are one of the listed resources")]
pub(crate) enum Payments {
    ListPayments,
    CreatePayment,
    ReadPayment,
    SetPaymentMetadata,
    ExplainPayment,
    ListAccounts,
    CreateAccount,
    ReadAccount,
    ListBalances,
    ListBankAccounts,
    CreateBankAccount,
    ReadBankAccount,
    ForwardBankAccount,
    SetBankAccountMetadata,
    ListInitiations,
    CreateInitiation,
    ReadInitiation,
    DeleteInitiation,
    SetInitiationStatus,
    RetryInitiation,
    ReverseInitiation,
    ListPools,
    CreatePool,
    ReadPool,
    DeletePool,
    AddPoolAccount,
    RemovePoolAccount,
    PoolBalances,
    ListConnectors,
    ListConfigs,
    Install,
    Uninstall,
    ReadConfig,
    UpdateConfig,
    Reset,
    ReadPostingRule,
    SetPostingRule,
    DeletePostingRule,
    RunPostings,
    ListTasks,
    ReadTask,
    StripeTransfer,
    CreateTransfer,
    ListTransfers,
}

impl Operation {
    /// Returns whether the operation is about exporters or pipelines, which only exist if the operator enables them.
    pub(crate) const fn is_of_exporters(self) -> bool {
        matches!(
            self,
            Self::V2(
                V2::ListExporters
                    | V2::CreateExporter
                    | V2::ReadExporter
                    | V2::UpdateExporter
                    | V2::DeleteExporter
                    | V2::ListPipelines
                    | V2::CreatePipeline
                    | V2::ReadPipeline
                    | V2::DeletePipeline
                    | V2::StartPipeline
                    | V2::StopPipeline
                    | V2::ResetPipeline
            )
        )
    }

    /// Returns whether this is an OAuth operation, whose errors have the OAuth form.
    pub(crate) const fn is_protocol(self) -> bool {
        use Auth as A;
        matches!(
            self,
            Self::Auth(A::Token | A::Introspect | A::Revoke | A::Authorize | A::Callback | A::EndSession)
        )
    }
}

/// The forms of the service's information about its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InfoForm {
    /// Both bare and wrapped, so that clients of every release find their form.
    Hybrid,
    /// Wrapped in the member `data`.
    Wrapped,
    /// Bare, without a wrapper.
    Bare,
    /// Only the release.
    Release,
}

/// The forms of health checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthForm {
    /// A response without any check.
    Alive,
    /// The result of each check; 500 if a check fails.
    Checks,
    /// The form for load balancers; 503 if a check fails.
    Ready,
}

/// The forms of the API description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentForm {
    Json,
    Yaml,
    /// A page for people.
    Page,
    /// A redirect to the page.
    Link,
}
