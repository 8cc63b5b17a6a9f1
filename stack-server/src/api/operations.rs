//! The operations of the API: what a route asks for, by the part of the API that answers.

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

/// An operation of the first generation.
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

/// An operation of the second generation.
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
#[expect(clippy::enum_variant_names, reason = "payments are one of the things that it lists")]
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
    /// Whether it is about exporters or pipelines, which are only there where the operator says so.
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

    /// Whether this is an operation of OAuth, which refuses in its words.
    pub(crate) const fn is_protocol(self) -> bool {
        use Auth as A;
        matches!(
            self,
            Self::Auth(A::Token | A::Introspect | A::Revoke | A::Authorize | A::Callback | A::EndSession)
        )
    }
}

/// The forms in which the service tells its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InfoForm {
    /// Bare and wrapped at once, so that every generation finds its own.
    Hybrid,
    /// Under `data`.
    Wrapped,
    /// Bare.
    Bare,
    /// The release alone.
    Release,
}

/// The forms in which the service tells whether it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HealthForm {
    /// That it answers at all.
    Alive,
    /// By check; 500 if one fails.
    Checks,
    /// As load balancers want it; 503 if a check fails.
    Ready,
}

/// The forms in which the API is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentForm {
    Json,
    Yaml,
    /// For a person.
    Page,
    /// The way to the page.
    Link,
}
