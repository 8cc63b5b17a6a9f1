//! Bank accounts: the numbers that a client has stored, and the accounts that connectors have created from them.

use ledger_core::Timestamp;
use ledger_store::{Collection, DocumentKey, ReadError, Snapshot};

use crate::collections::BANK_ACCOUNTS;
use crate::http::error::ApiError;
use crate::payments::account::{decode_link, encode_link};
use crate::payments::codec::{Decoder, Encoder, Metadata, date_key, text_key};
use crate::payments::ids::{AccountId, ConnectorId};
use crate::payments::record::{self, Record, Versioned, ordered};
use crate::sealing::{OpenError, Sealer};
use crate::uuid::Uuid;

/// Indexes of bank accounts, by the field that each sorts by.
pub(crate) const BY_DATE: u32 = 1;
pub(crate) const BY_NAME: u32 = 2;

/// A bank account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BankAccount {
    pub(crate) id: Uuid,
    pub(crate) name: String,
    pub(crate) created_at: Timestamp,
    pub(crate) country: String,
    /// The numbers as encrypted JSON.
    pub(crate) numbers: Vec<u8>,
    pub(crate) swift_bic_code: String,
    pub(crate) metadata: Metadata,
    /// The accounts that connectors created, oldest first.
    pub(crate) related: Vec<RelatedAccount>,
}

/// The account that a connector created from a bank account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelatedAccount {
    pub(crate) id: Uuid,
    pub(crate) created_at: Timestamp,
    pub(crate) account: AccountId,
}

/// The numbers of a bank account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) account_number: String,
    pub(crate) iban: String,
}

impl Numbers {
    /// Returns the bytes to encrypt.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.text(&self.account_number).text(&self.iban);
        out.into_bytes()
    }

    /// Reads bytes that [`Numbers::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut input = Decoder::new(bytes);
        Some(Self { account_number: input.string()?, iban: input.string()? })
    }

    /// Returns the numbers for clients: only a few characters at each end are visible.
    pub(crate) fn masked(&self) -> Self {
        Self { account_number: masked(&self.account_number, 2, 3), iban: masked(&self.iban, 4, 4) }
    }
}

/// Masks a text except for its first and last characters. A text that is not longer than these is masked entirely.
fn masked(text: &str, first: usize, last: usize) -> String {
    let length = text.chars().count();
    let is_short = length <= first + last;
    let shown = |at: usize| !is_short && (at < first || at >= length - last);
    text.chars().enumerate().map(|(at, c)| if shown(at) { c } else { '*' }).collect()
}

impl Record for BankAccount {
    const COLLECTION: Collection = BANK_ACCOUNTS;
    const NAME: &'static str = "a bank account";

    fn key(&self) -> Vec<u8> {
        self.id.bytes().to_vec()
    }

    fn keys(&self) -> Vec<DocumentKey> {
        vec![ordered(BY_DATE, date_key(self.created_at)), ordered(BY_NAME, text_key(&self.name))]
    }

    fn encode(&self, out: &mut Encoder) {
        out.text(&self.name).time(self.created_at).text(&self.country).raw(&self.numbers);
        out.text(&self.swift_bic_code).metadata(&self.metadata).count(self.related.len());
        for related in &self.related {
            out.raw(related.id.bytes()).time(related.created_at);
            encode_link(out, Some(&related.account), &no_installation());
        }
    }

    fn decode(key: &[u8], input: &mut Decoder<'_>) -> Option<Self> {
        Some(Self {
            id: Uuid::from_bytes(key.try_into().ok()?),
            name: input.string()?,
            created_at: input.time()?,
            country: input.string()?,
            numbers: input.raw()?.to_vec(),
            swift_bic_code: input.string()?,
            metadata: input.metadata()?,
            related: (0..input.count()?).map(|_| decode_related(input)).collect::<Option<_>>()?,
        })
    }
}

/// Returns the id of no installation. A bank account belongs to no installation, so its links to accounts are stored in
/// full.
fn no_installation() -> ConnectorId {
    ConnectorId { provider: "".into(), installation: Uuid::from_bytes([0; 16]) }
}

fn decode_related(input: &mut Decoder<'_>) -> Option<RelatedAccount> {
    Some(RelatedAccount {
        id: Uuid::from_bytes(input.raw()?.try_into().ok()?),
        created_at: input.time()?,
        account: decode_link(input, &no_installation())??,
    })
}

/// The reason why the numbers of a bank account cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumbersError {
    Sealed(OpenError),
    Malformed,
}

impl From<NumbersError> for ApiError {
    fn from(error: NumbersError) -> Self {
        match error {
            NumbersError::Sealed(error) => Self::fault(&error.to_string()),
            NumbersError::Malformed => Self::fault("numbers of a bank account are not what was written"),
        }
    }
}

impl BankAccount {
    /// Returns the purpose that binds encrypted numbers to their bank account.
    pub(crate) fn purpose(id: &Uuid) -> Vec<u8> {
        format!("bank account {id}").into_bytes()
    }

    /// Decrypts the numbers.
    ///
    /// # Errors
    ///
    /// Fails if another key encrypted the numbers, or if they are damaged.
    pub(crate) fn open(&self, sealer: &Sealer) -> Result<Numbers, NumbersError> {
        let opened = sealer.open(&Self::purpose(&self.id), &self.numbers).map_err(NumbersError::Sealed)?;
        Numbers::decode(&opened).ok_or(NumbersError::Malformed)
    }

    /// Returns the id of the account that a connector creates from this bank account. Its reference is the id of the
    /// bank account.
    pub(crate) fn account_at(&self, connector: &ConnectorId) -> AccountId {
        AccountId { connector: connector.clone(), reference: self.id.to_string() }
    }
}

/// Returns the bank account from which a connector has created this account.
pub(crate) fn of_account(snapshot: &Snapshot, account: &AccountId) -> Result<Option<BankAccount>, ReadError> {
    let Some(id) = Uuid::parse(&account.reference) else { return Ok(None) };
    let found = find(snapshot, &id)?.map(|found| found.value);
    Ok(found.filter(|found| found.related.iter().any(|related| related.account == *account)))
}

/// Returns the bank account with this id.
pub(crate) fn find(snapshot: &Snapshot, id: &Uuid) -> Result<Option<Versioned<BankAccount>>, ReadError> {
    record::find(snapshot, id.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_only_their_ends() {
        let numbers = Numbers {
            account_number: "12345678901".to_owned(),
            iban: "FR7630001007941234567890185".to_owned(),
        };
        let masked = numbers.masked();
        assert_eq!(masked.account_number, "12******901");
        assert_eq!(masked.iban, "FR76*******************0185");
        let short = Numbers { account_number: "12345".to_owned(), iban: "é".to_owned() };
        assert_eq!((&*short.masked().account_number, &*short.masked().iban), ("*****", "*"));
        assert_eq!(Numbers::decode(&numbers.encode()), Some(numbers));
    }

    #[test]
    fn a_bank_account_is_read_as_it_was_written() {
        let connector = ConnectorId { provider: "WISE".into(), installation: Uuid::from_bytes([7; 16]) };
        let account = BankAccount {
            id: Uuid::from_bytes([1; 16]),
            name: "Payroll".to_owned(),
            created_at: Timestamp::from_micros(3),
            country: "FR".to_owned(),
            numbers: vec![1, 2],
            swift_bic_code: "BNPAFRPP".to_owned(),
            metadata: Metadata::from([("k".to_owned(), "v".to_owned())]),
            related: vec![RelatedAccount {
                id: Uuid::from_bytes([2; 16]),
                created_at: Timestamp::from_micros(4),
                account: AccountId { connector, reference: "x".to_owned() },
            }],
        };
        let mut out = Encoder::default();
        account.encode(&mut out);
        let bytes = out.into_bytes();
        assert_eq!(BankAccount::decode(&account.key(), &mut Decoder::new(&bytes)), Some(account));
    }
}
