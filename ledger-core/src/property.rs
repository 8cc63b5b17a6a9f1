//! Properties of resources in filters.

/// A kind of object that filters select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Accounts.
    Accounts,
    /// Transactions.
    Transactions,
    /// Holdings with their volumes, one row for each account and asset.
    Volumes,
    /// Accounts whose balances are added up.
    AggregatedBalances,
    /// Entries of a log.
    Logs,
    /// Ledgers of a store.
    Ledgers,
    /// Versions of a ledger's schema.
    Schemas,
}

impl Resource {
    /// All kinds of objects that filters select.
    ///
    /// ```
    /// use ledger_core::{Property, Resource};
    /// let have_metadata = Resource::ALL.map(|resource| Property::of(resource, "metadata").is_some());
    /// assert_eq!(have_metadata, [true, true, true, true, false, true, false]);
    /// ```
    pub const ALL: [Self; 7] = [
        Self::Accounts,
        Self::Transactions,
        Self::Volumes,
        Self::AggregatedBalances,
        Self::Logs,
        Self::Ledgers,
        Self::Schemas,
    ];
}

/// A named property of a resource that filters can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Property {
    /// The address of an account, or the account of a row of volumes.
    Address,
    /// Source or destination of any posting.
    Account,
    /// Source of any posting.
    Source,
    /// Destination of any posting.
    Destination,
    /// Metadata, by key.
    Metadata,
    /// Balances, by asset.
    Balance,
    /// The reference of a transaction.
    Reference,
    /// The effective date of a transaction.
    Timestamp,
    /// Insertion date of a transaction.
    InsertedAt,
    /// Date of the last change of an account or transaction.
    UpdatedAt,
    /// Date of the revert of a transaction.
    RevertedAt,
    /// Effective date of the first use of an account.
    FirstUsage,
    /// Insertion date of an account.
    InsertionDate,
    /// True for a transaction that is reverted.
    Reverted,
    /// The number of a transaction or log entry.
    Id,
    /// Insertion date of a log entry.
    Date,
    /// The type of a log entry.
    Type,
    /// The bucket of a ledger.
    Bucket,
    /// The name of a ledger.
    Name,
    /// The features of a ledger, by name.
    Features,
    /// The version of a schema.
    Version,
    /// Insertion date of a schema version.
    CreatedAt,
}

impl Property {
    /// All properties, each of which belongs to at least one kind of resource.
    ///
    /// ```
    /// use ledger_core::{Property, Resource};
    /// let names = Property::ALL.map(Property::name);
    /// let of_logs: Vec<_> = names.into_iter().filter(|name| Property::of(Resource::Logs, name).is_some()).collect();
    /// assert_eq!(of_logs, ["id", "date", "type"]);
    /// ```
    pub const ALL: [Self; 22] = [
        Self::Address,
        Self::Account,
        Self::Source,
        Self::Destination,
        Self::Metadata,
        Self::Balance,
        Self::Reference,
        Self::Timestamp,
        Self::InsertedAt,
        Self::UpdatedAt,
        Self::RevertedAt,
        Self::FirstUsage,
        Self::InsertionDate,
        Self::Reverted,
        Self::Id,
        Self::Date,
        Self::Type,
        Self::Bucket,
        Self::Name,
        Self::Features,
        Self::Version,
        Self::CreatedAt,
    ];

    /// Finds a property of `resource` by its name.
    pub fn of(resource: Resource, name: &str) -> Option<Self> {
        use Resource::{Accounts, AggregatedBalances, Ledgers, Logs, Schemas, Transactions, Volumes};
        let (property, resources): (_, &[Resource]) = match name {
            "address" => (Self::Address, &[Accounts, Volumes, AggregatedBalances]),
            "account" if resource == Volumes => (Self::Address, &[Volumes]),
            "account" => (Self::Account, &[Transactions]),
            "source" => (Self::Source, &[Transactions]),
            "destination" => (Self::Destination, &[Transactions]),
            "metadata" => (Self::Metadata, &[Accounts, Transactions, Volumes, AggregatedBalances, Ledgers]),
            "balance" => (Self::Balance, &[Accounts, Volumes]),
            "reference" => (Self::Reference, &[Transactions]),
            "timestamp" => (Self::Timestamp, &[Transactions]),
            "inserted_at" => (Self::InsertedAt, &[Transactions]),
            "updated_at" => (Self::UpdatedAt, &[Accounts, Transactions]),
            "reverted_at" => (Self::RevertedAt, &[Transactions]),
            "first_usage" => (Self::FirstUsage, &[Accounts, Volumes]),
            "insertion_date" => (Self::InsertionDate, &[Accounts]),
            "reverted" => (Self::Reverted, &[Transactions]),
            "id" => (Self::Id, &[Transactions, Logs]),
            "date" => (Self::Date, &[Logs]),
            "type" => (Self::Type, &[Logs]),
            "bucket" => (Self::Bucket, &[Ledgers]),
            "name" => (Self::Name, &[Ledgers]),
            "features" => (Self::Features, &[Ledgers]),
            "version" => (Self::Version, &[Schemas]),
            "created_at" => (Self::CreatedAt, &[Schemas]),
            _ => return None,
        };
        resources.contains(&resource).then_some(property)
    }

    /// Returns the name that [`Property::of`] finds.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Account => "account",
            Self::Source => "source",
            Self::Destination => "destination",
            Self::Metadata => "metadata",
            Self::Balance => "balance",
            Self::Reference => "reference",
            Self::Timestamp => "timestamp",
            Self::InsertedAt => "inserted_at",
            Self::UpdatedAt => "updated_at",
            Self::RevertedAt => "reverted_at",
            Self::FirstUsage => "first_usage",
            Self::InsertionDate => "insertion_date",
            Self::Reverted => "reverted",
            Self::Id => "id",
            Self::Date => "date",
            Self::Type => "type",
            Self::Bucket => "bucket",
            Self::Name => "name",
            Self::Features => "features",
            Self::Version => "version",
            Self::CreatedAt => "created_at",
        }
    }

    pub(crate) const fn has_keys(self) -> bool {
        matches!(self, Self::Metadata | Self::Balance | Self::Features)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_property_by_its_name() {
        let counts = Resource::ALL.map(|resource| {
            let is_found = |property: &Property| {
                let found = Property::of(resource, property.name());
                // The account of a row of volumes is its address.
                let of_row = resource == Resource::Volumes && *property == Property::Account;
                let expected = if of_row { Property::Address } else { *property };
                assert!(found.is_none_or(|found| found == expected), "{resource:?} {property:?}");
                found.is_some()
            };
            Property::ALL.iter().filter(|property| is_found(property)).count()
        });
        assert_eq!(counts, [6, 11, 5, 2, 3, 4, 2]);
    }
}
