//! Handlers of pools of accounts.

use std::collections::BTreeSet;

use hyper::StatusCode;
use ledger_store::{Expected, Snapshot};
use serde::de::MapAccess;

use crate::api::context::Context;
use crate::api::payments::bank_accounts::uuid;
use crate::api::payments::forms::{self, data};
use crate::api::payments::list::{self, List, UNFILTERED};
use crate::api::payments::payment::{account, account_id, body, required};
use crate::collections::POOLS;
use crate::http::error::ApiError;
use crate::http::json::{self, Array, Fields, Text};
use crate::http::response::{self, Reply};
use crate::log;
use crate::payments::event::Event;
use crate::payments::ids::AccountId;
use crate::payments::pool::{self, BY_DATE, BY_NAME, MEMBERS_MAX, Member, Pool};
use crate::payments::record::{self, Record as _, Versioned};
use crate::payments::service::Payments;
use crate::uuid::Uuid;

const LIST: List = List {
    name: "pools",
    collection: POOLS,
    sorts: &[("createdAt", BY_DATE), ("created_at", BY_DATE), ("date", BY_DATE), ("name", BY_NAME)],
    filter: UNFILTERED,
    by_reference: None,
    by_value: list::no_values,
};

pub(super) async fn list(context: &Context<'_>) -> Result<Reply, ApiError> {
    let request = LIST.parse(context, "", vec![])?;
    let accept = |_: &list::ListRequest, snapshot: &Snapshot, document: &_| {
        let pool = record::of::<Pool>(document)?.value;
        Ok(Some((pool::members(snapshot, &pool.id)?, pool)))
    };
    let write = |json: &mut _, (members, pool): &(Vec<AccountId>, Pool)| {
        forms::pool(json, &pool.id, &pool.name, members);
    };
    list::answer(context, request, accept, write).await
}

fn find(snapshot: &Snapshot, id: &Uuid) -> Result<Versioned<Pool>, ApiError> {
    pool::find(snapshot, id)?.ok_or_else(|| ApiError::not_found("pool not found"))
}

pub(super) async fn read(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let read = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        Ok((find(&snapshot, &id)?.value, pool::members(&snapshot, &id)?))
    };
    let (pool, members) = context.app.blocking(read).await?;
    Ok(data(context, StatusCode::OK, |json| forms::pool(json, &pool.id, &pool.name, &members)))
}

/// The body of a request to create a pool, or to add the account `account` to one.
#[derive(Default)]
struct Body<'a> {
    name: Text<'a>,
    accounts: Vec<Text<'a>>,
    account: Text<'a>,
}

impl<'de> Fields<'de> for Body<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match json::field(name, &["name", "accountIDs", "accountID"]) {
            Some("name") => self.name = map.next_value()?,
            Some("accountIDs") => self.accounts = map.next_value::<Array<_>>()?.0,
            Some("accountID") => self.account = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Parses the required id of a pool's account.
fn member(text: &Text<'_>) -> Result<AccountId, ApiError> {
    account_id(text, "accountID")?.ok_or_else(|| ApiError::validation("accountID is required"))
}

/// Refuses an account that does not exist.
fn check_account(snapshot: &Snapshot, id: &AccountId) -> Result<(), ApiError> {
    match account(snapshot, id)? {
        Some(_) => Ok(()),
        None => Err(ApiError::validation(format!("there is no account {:?}", id.reference))),
    }
}

pub(super) async fn create(context: &Context<'_>) -> Result<Reply, ApiError> {
    let body = body::<Body<'_>>(context)?;
    let name = required(&body.name, "name")?;
    if name.len() > ledger_store::DOCUMENT_KEY_BYTES_MAX {
        return Err(ApiError::validation("name is too long"));
    }
    let accounts = body.accounts.iter().map(member).collect::<Result<Vec<_>, _>>()?;
    let distinct: BTreeSet<_> = accounts.iter().collect();
    if accounts.is_empty() || accounts.len() > MEMBERS_MAX || distinct.len() < accounts.len() {
        let message = format!("accountIDs has one to {MEMBERS_MAX} accounts, each once");
        return Err(ApiError::validation(message));
    }
    let pool = Pool { id: Uuid::random()?, name: name.to_owned(), created_at: log::now() };
    let (payments, created) = (context.app.payments().clone(), pool.clone());
    let write = move |_: &ledger_store::Store| {
        payments.write(|snapshot| {
            accounts.iter().try_for_each(|account| check_account(snapshot, account))?;
            let mut changes = payments.event_changes(&[Event::Pool(&pool, &accounts)], pool.created_at);
            changes.push(record::put(&pool, Expected::Absent));
            for account in &accounts {
                let member = Member { pool: pool.id, account: account.clone() };
                changes.push(record::put(&member, Expected::Absent));
            }
            Ok((changes, accounts.clone()))
        })
    };
    let accounts = context.app.blocking(write).await?;
    Ok(data(context, StatusCode::OK, |json| forms::pool(json, &created.id, &created.name, &accounts)))
}

/// Deletes up to [`MEMBERS_MAX`] members of a pool in one commit, and the pool if it has no more. Returns whether the
/// pool is deleted.
fn delete_part(payments: &Payments, id: &Uuid) -> Result<bool, ApiError> {
    payments.write(|snapshot| {
        let Versioned { value: pool, version } = find(snapshot, id)?;
        let members = pool::members(snapshot, id)?;
        let is_last = members.len() <= MEMBERS_MAX;
        let mut changes = if is_last {
            let mut changes = payments.event_changes(&[Event::PoolDeleted(id)], log::now());
            changes.push(record::delete::<Pool>(pool.key(), Expected::Version(version)));
            changes
        } else {
            vec![record::put(&pool, Expected::Version(version))]
        };
        changes.extend(members.into_iter().take(MEMBERS_MAX).map(|account| {
            let member = Member { pool: *id, account };
            record::delete::<Member>(member.key(), Expected::Anything)
        }));
        Ok((changes, is_last))
    })
}

pub(super) async fn delete(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let payments = context.app.payments().clone();
    // Use as many commits as the members need. The last one deletes the pool, too, so that no member
    // remains without it.
    let write = move |_: &ledger_store::Store| {
        while !delete_part(&payments, &id)? {}
        Ok(())
    };
    context.app.blocking(write).await?;
    Ok(response::no_content())
}

pub(super) async fn add_account(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let account = member(&body::<Body<'_>>(context)?.account)?;
    change_member(context, id, account, true).await
}

pub(super) async fn remove_account(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let text = context.variable(1);
    let account = AccountId::parse(text)
        .ok_or_else(|| ApiError::validation(format!("{text:?} is no id of an account")))?;
    change_member(context, id, account, false).await
}

/// Adds an account to a pool, or removes it from the pool.
async fn change_member(
    context: &Context<'_>,
    id: Uuid,
    account: AccountId,
    adds: bool,
) -> Result<Reply, ApiError> {
    let payments = context.app.payments().clone();
    let write = move |_: &ledger_store::Store| {
        payments.write(|snapshot| {
            let Versioned { value: pool, version } = find(snapshot, &id)?;
            let mut members = pool::members(snapshot, &id)?;
            let is_member = members.contains(&account);
            let member = Member { pool: id, account: account.clone() };
            let change = if adds {
                check_account(snapshot, &account)?;
                if is_member {
                    return Err(ApiError::validation("the account is in the pool already"));
                }
                members.push(account.clone());
                record::put(&member, Expected::Absent)
            } else {
                if !is_member {
                    return Ok((vec![], ()));
                }
                members.retain(|have| *have != account);
                record::delete::<Member>(member.key(), Expected::Anything)
            };
            let mut changes = payments.event_changes(&[Event::Pool(&pool, &members)], log::now());
            // Write the unchanged pool, so that concurrent changes and deletions of the pool conflict. The event of
            // each change then lists the members after all earlier changes.
            changes.extend([record::put(&pool, Expected::Version(version)), change]);
            Ok((changes, ()))
        })
    };
    context.app.blocking(write).await?;
    Ok(response::no_content())
}

pub(super) async fn balances(context: &Context<'_>) -> Result<Reply, ApiError> {
    let id = uuid(context, 0)?;
    let at = context.query.date(&["at"])?.ok_or_else(|| ApiError::validation("at is required"))?;
    let read = move |store: &ledger_store::Store| {
        let snapshot = store.snapshot();
        find(&snapshot, &id)?;
        Ok(pool::balances(&snapshot, &id, at)?)
    };
    let sums = context.app.blocking(read).await?;
    Ok(data(context, StatusCode::OK, |json| {
        json.raw("{\"balances\":[").list(&sums, |json, (asset, sum)| {
            json.raw("{\"amount\":").balance(sum).raw(",\"asset\":").string(asset).raw("}");
        });
        json.raw("]}");
    }))
}
