//! Scenarios for those who keep books, in a small language of lines.
//!
//! One line is one command or one question, and each command is a second later than the one before:
//!
//! ```text
//! world -> users:1 USD/2 100 & users:1 -> shop USD/2 40   a transaction; & joins postings
//!     … force | reference R | dated 5 | with k=v | and users:1 k=v
//! revert 1 [force] [at effective date]
//! set users:1 k=v | set #1 k=v | unset users:1 k | unset #1 k      # is a transaction
//!     … refused: insufficient funds in users:1
//! balance users:1 USD/2 60 | volumes users:1 USD/2 100 40
//! metadata users:1 k=v | metadata #1 none
//! posted 2 users:1 -> world USD/2 60 | dated 2 5 | reverted 1 yes
//! after 1 users:1 USD/2 100       the balance right after a transaction, in order of insertion
//! effective 1 users:1 USD/2 100   the same in order of effective dates
//! ```
//!
//! Every command goes through the rules and through the reference model, which must agree.

use ledger_core::model::Model;
use ledger_core::{
    AccountAddress, Asset, Balance, Command, CreateTransaction, HoldingVolumes, LedgerName, LogPayload,
    Metadata, Overdraft, Posting, Postings, Reference, Rejection, RevertDate, RevertTransaction, Target,
    Timestamp, TransactionId, Volumes,
};

use crate::books::Books;

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

struct Bench {
    books: Books,
    model: Model,
    ledger: LedgerName,
    seconds: i64,
}

#[track_caller]
fn check(scenario: &str) {
    let ledger = LedgerName::parse("main").unwrap();
    let mut bench = Bench { books: Books::default(), model: Model::default(), ledger, seconds: 0 };
    for line in scenario.lines().map(str::trim).filter(|line| !line.is_empty()) {
        bench.line(line);
    }
    for (asset, sum) in bench.books.sums() {
        assert_eq!(sum, Balance::ZERO, "{asset} came from nowhere");
    }
}

fn second(seconds: &str) -> Timestamp {
    Timestamp::from_micros(seconds.parse::<i64>().unwrap() * 1_000_000)
}

fn address(text: &str) -> AccountAddress {
    AccountAddress::parse(text).unwrap()
}

fn id(text: &str) -> TransactionId {
    TransactionId::new(text.trim_start_matches('#').parse().unwrap())
}

fn target(text: &str) -> Target {
    if text.starts_with('#') { Target::Transaction(id(text)) } else { Target::Account(address(text)) }
}

fn pairs(text: &str) -> Metadata {
    text.split(',').filter_map(|pair| pair.split_once('=')).collect()
}

fn postings(words: &mut Words<'_>) -> Postings {
    let mut postings = Postings::new();
    loop {
        let source = address(words.next().unwrap());
        assert_eq!(words.next(), Some("->"));
        let destination = address(words.next().unwrap());
        let asset = Asset::parse(words.next().unwrap()).unwrap();
        let amount = words.next().unwrap().parse().unwrap();
        postings.push(Posting { source, destination, amount, asset });
        if words.next_if_eq(&"&").is_none() {
            return postings;
        }
    }
}

fn create(words: &mut Words<'_>) -> Command {
    let mut create = CreateTransaction::of(postings(words));
    while let Some(option) = words.next() {
        let mut value = || words.next().unwrap();
        match option {
            "force" => create.overdraft = Overdraft::Allow,
            "reference" => create.reference = Some(Reference::parse(value()).unwrap()),
            "dated" => create.timestamp = Some(second(value())),
            "with" => create.metadata = pairs(value()),
            "and" => {
                let account = address(value());
                create.account_metadata.insert(account, pairs(value()));
            }
            other => panic!("no option is called {other}"),
        }
    }
    Command::CreateTransaction(create)
}

fn command(line: &str) -> Command {
    let mut words = line.split_whitespace().peekable();
    match *words.peek().unwrap() {
        "revert" => {
            let id = id(words.nth(1).unwrap());
            let overdraft =
                if words.next_if_eq(&"force").is_some() { Overdraft::Allow } else { Overdraft::Refuse };
            let dated = if words.next() == Some("at") { RevertDate::OfOriginal } else { RevertDate::Now };
            Command::RevertTransaction(RevertTransaction {
                id,
                overdraft,
                dated,
                metadata: Metadata::EMPTY,
                rules: ledger_core::Rules::Current,
            })
        }
        "set" => Command::SetMetadata {
            target: target(words.nth(1).unwrap()),
            metadata: pairs(words.next().unwrap_or_default()),
        },
        "unset" => Command::DeleteMetadata {
            target: target(words.nth(1).unwrap()),
            key: words.next().unwrap().into(),
        },
        "nothing" => Command::CreateTransaction(CreateTransaction::of(Postings::new())),
        _ => create(&mut words),
    }
}

fn reason(rejection: &Rejection) -> String {
    match rejection {
        Rejection::InsufficientFunds { account, .. } => format!("insufficient funds in {account}"),
        Rejection::ReferenceTaken { .. } => "reference taken".into(),
        Rejection::AlreadyReverted { .. } => "already reverted".into(),
        Rejection::TransactionNotFound { .. } => "no such transaction".into(),
        Rejection::MetadataKeyNotFound { .. } => "no such key".into(),
        Rejection::NoPostings => "no postings".into(),
        other => other.to_string(),
    }
}

fn found(rows: &[HoldingVolumes], account: &str, asset: &str) -> Volumes {
    let row = rows.iter().find(|row| row.account.as_str() == account && row.asset.as_str() == asset);
    row.map(|row| row.volumes.clone()).unwrap_or_default()
}

impl Bench {
    #[track_caller]
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["balance", account, asset, want] => {
                assert_eq!(self.volumes(account, asset).balance(), Balance::parse(want).unwrap(), "{line}");
            }
            ["volumes", account, asset, input, output] => {
                let want = Volumes { input: input.parse().unwrap(), output: output.parse().unwrap() };
                assert_eq!(self.volumes(account, asset), want, "{line}");
            }
            ["metadata", subject, want] => {
                assert_eq!(self.metadata(&target(subject)), pairs(want), "{line}");
            }
            ["posted", transaction, ref want @ ..] => {
                let want = want.join(" ");
                let posted = &self.books.transactions[&id(transaction)].postings;
                assert_eq!(*posted, postings(&mut want.split_whitespace().peekable()), "{line}");
            }
            ["dated", transaction, want] => {
                assert_eq!(self.books.transactions[&id(transaction)].timestamp, second(want), "{line}");
            }
            ["reverted", transaction, want] => {
                assert_eq!(self.books.transactions[&id(transaction)].reverted, want == "yes", "{line}");
            }
            ["after", transaction, account, asset, want] => {
                let transaction = self.model.transaction(&self.ledger, id(transaction), None).unwrap();
                let have = found(&transaction.post_commit_volumes, account, asset).balance();
                assert_eq!(have, Balance::parse(want).unwrap(), "{line}");
            }
            ["effective", transaction, account, asset, want] => {
                let rows = self.model.post_commit_effective_volumes(&self.ledger, id(transaction)).unwrap();
                assert_eq!(found(&rows, account, asset).balance(), Balance::parse(want).unwrap(), "{line}");
            }
            _ => match line.split_once("refused:") {
                Some((line, want)) => {
                    let before = self.books.clone();
                    let refused = self.execute(line).expect_err(line);
                    assert_eq!(reason(&refused), want.trim(), "{line}");
                    assert!(self.books == before, "a refusal changes nothing: {line}");
                }
                None => self.execute(line).unwrap_or_else(|refused| panic!("{line}: {refused}")),
            },
        }
    }

    fn execute(&mut self, line: &str) -> Result<(), Rejection> {
        self.seconds += 1;
        let (command, now) = (command(line), second(&self.seconds.to_string()));
        let entry = self.books.execute(&command, now);
        let mut judged = self.model.execute(&self.ledger, &command, None, false, now);
        if let Ok(answer) = &mut judged {
            match &mut answer.entry.payload {
                LogPayload::NewTransaction { effective_volumes, .. }
                | LogPayload::RevertedTransaction { effective_volumes, .. } => *effective_volumes = None,
                _ => {}
            }
        }
        assert_eq!(entry, judged.map(|answer| answer.entry), "rules and model differ on {line}");
        entry.map(|_| ())
    }

    fn volumes(&self, account: &str, asset: &str) -> Volumes {
        let (account, asset) = (address(account), Asset::parse(asset).unwrap());
        let judged = self.model.account(&self.ledger, &account, None);
        let judged = judged.and_then(|account| account.volumes.get(&asset).cloned()).unwrap_or_default();
        let kept = self.books.volumes.get(&(account, asset)).cloned().unwrap_or_default();
        assert_eq!(kept, judged, "rules and model differ");
        kept
    }

    fn metadata(&self, target: &Target) -> Metadata {
        let (kept, judged) = match target {
            Target::Account(account) => (
                self.books.accounts.get(account).cloned(),
                self.model.account(&self.ledger, account, None).map(|account| account.metadata),
            ),
            Target::Transaction(id) => (
                self.books.transactions.get(id).map(|known| known.metadata.clone()),
                self.model.transaction(&self.ledger, *id, None).map(|transaction| transaction.metadata),
            ),
        };
        assert_eq!(kept, judged, "rules and model differ");
        kept.unwrap_or_default()
    }
}

#[test]
fn spending_more_than_the_balance_is_refused() {
    check(
        "world    -> users:1   USD/2 100
         users:1  -> shops:9   USD/2 101   refused: insufficient funds in users:1
         balance users:1 USD/2 100
         users:1  -> shops:9   USD/2 100
         volumes users:1 USD/2 100 100
         balance shops:9 USD/2 100",
    );
}

#[test]
fn only_world_goes_below_zero_by_itself() {
    check(
        "world -> a USD 100
         balance world USD -100
         a -> world USD 30
         volumes world USD 30 100
         worldwide -> a USD 1   refused: insufficient funds in worldwide
         world:a -> a USD 1     refused: insufficient funds in world:a",
    );
}

#[test]
fn assets_are_apart() {
    check(
        "world -> a USD/2 100
         a -> b USD 1     refused: insufficient funds in a
         a -> b USD/3 1   refused: insufficient funds in a
         a -> b EUR/2 1   refused: insufficient funds in a",
    );
}

#[test]
fn postings_are_executed_in_order() {
    check(
        "world -> a USD 10 & a -> b USD 10 & b -> c USD 10
         balance a USD 0
         balance c USD 10
         x -> y USD 5 & world -> x USD 5   refused: insufficient funds in x
         world -> x USD 5 & x -> y USD 5",
    );
}

#[test]
fn the_first_account_that_lacks_funds_is_named() {
    check(
        "world -> a USD 10
         a -> c USD 10 & b -> c USD 1 & d -> c USD 1   refused: insufficient funds in b",
    );
}

#[test]
fn funds_are_not_counted_twice() {
    check(
        "world -> a USD 10
         a -> b USD 6 & a -> c USD 6   refused: insufficient funds in a
         a -> b USD 6 & a -> c USD 4",
    );
}

#[test]
fn nothing_can_be_moved_from_anyone() {
    check(
        "poor -> a USD 0
         volumes poor USD 0 0
         poor -> a USD 5 force
         poor -> a USD 0
         balance poor USD -5",
    );
}

#[test]
fn an_account_can_pay_itself_what_it_has() {
    check(
        "world -> a USD 10
         a -> a USD 10
         volumes a USD 20 10
         a -> a USD 11   refused: insufficient funds in a
         world -> world USD 7
         volumes world USD 7 17",
    );
}

#[test]
fn a_transaction_has_postings() {
    check("nothing refused: no postings");
}

#[test]
fn force_lets_an_account_go_below_zero() {
    check(
        "a -> b USD 10 force
         balance a USD -10
         a -> b USD 1   refused: insufficient funds in a
         world -> a USD 15
         a -> b USD 5
         balance a USD 0",
    );
}

#[test]
fn amounts_have_no_upper_limit() {
    check(
        "world -> a BTC/18 340282366920938463463374607431768211456
         world -> a BTC/18 340282366920938463463374607431768211456
         balance a BTC/18 680564733841876926926749214863536422912
         balance world BTC/18 -680564733841876926926749214863536422912
         a -> b BTC/18 680564733841876926926749214863536422913   refused: insufficient funds in a",
    );
}

#[test]
fn a_reference_names_one_transaction_for_ever() {
    check(
        "world -> a USD 1 reference r
         world -> a USD 1 reference r    refused: reference taken
         world -> a USD 1 reference R
         revert 1
         world -> a USD 1 reference r    refused: reference taken
         balance a USD 1",
    );
}

#[test]
fn a_refused_transaction_leaves_its_reference_free() {
    check(
        "a -> b USD 1 reference r    refused: insufficient funds in a
         world -> b USD 1 reference r",
    );
}

#[test]
fn funds_are_tested_before_the_reference() {
    check(
        "world -> a USD 1 reference r
         b -> a USD 1 reference r    refused: insufficient funds in b",
    );
}

#[test]
fn a_revert_is_the_inverse() {
    check(
        "world -> a USD 10 & world -> b EUR 5
         revert 1
         posted 2 b -> world EUR 5 & a -> world USD 10
         balance a USD 0
         balance b EUR 0
         reverted 1 yes
         reverted 2 no
         metadata #2 com.formance.spec/state/reverts=1",
    );
}

#[test]
fn a_transaction_is_reverted_once() {
    check(
        "world -> a USD 10
         revert 1
         revert 1         refused: already reverted
         revert 1 force   refused: already reverted
         revert 9         refused: no such transaction",
    );
}

#[test]
fn a_revert_can_be_reverted() {
    check(
        "world -> a USD 10
         revert 1
         revert 2
         balance a USD 10
         posted 3 world -> a USD 10
         reverted 1 yes
         reverted 2 yes
         metadata #3 com.formance.spec/state/reverts=2",
    );
}

#[test]
fn a_revert_needs_the_funds() {
    check(
        "world -> a USD 10
         a -> b USD 4
         revert 1    refused: insufficient funds in a
         reverted 1 no
         revert 1 force
         balance a USD -4",
    );
}

#[test]
fn a_revert_through_an_account_that_only_passes_on_needs_no_funds_there() {
    check(
        "world -> a USD 10 & a -> b USD 10
         balance a USD 0
         revert 1
         balance a USD 0
         balance b USD 0
         volumes a USD 20 20",
    );
}

#[test]
fn a_revert_does_not_punish_who_was_below_zero_before() {
    check(
        "a -> b USD 10 force
         balance a USD -10
         a -> c USD 5 & c -> a USD 5 force
         revert 2
         balance a USD -10
         revert 1
         balance a USD 0",
    );
}

#[test]
fn a_revert_is_dated_now_or_as_the_original() {
    check(
        "world -> a USD 10 dated -100
         world -> a USD 20 dated -50
         revert 1
         dated 3 3
         revert 2 at effective date
         dated 4 -50
         balance a USD 0",
    );
}

#[test]
fn dates_chosen_by_the_caller_reorder_effective_volumes_only() {
    check(
        "world -> a USD 100 dated 1200
         world -> a USD 50 dated 1100
         after 1 a USD 100
         after 2 a USD 150
         effective 2 a USD 50
         effective 1 a USD 150
         balance a USD 150",
    );
}

#[test]
fn transactions_of_one_date_count_in_order_of_insertion() {
    check(
        "world -> a USD 1 dated 7
         world -> a USD 2 dated 7
         world -> a USD 4 dated 6
         effective 1 a USD 5
         effective 2 a USD 7
         effective 3 a USD 4",
    );
}

#[test]
fn funds_are_tested_now_whatever_the_date() {
    check(
        "world -> a USD 10
         a -> b USD 10 dated -1000
         balance a USD 0
         effective 2 a USD -10
         a -> b USD 1 dated 1000   refused: insufficient funds in a",
    );
}

#[test]
fn metadata_is_merged_key_by_key() {
    check(
        "world -> a USD 1 with x=1,y=2
         set #1 y=3,z=4
         metadata #1 x=1,y=3,z=4
         unset #1 x
         metadata #1 y=3,z=4
         unset #1 x   refused: no such key
         set #7 x=1   refused: no such transaction
         unset #7 x   refused: no such transaction",
    );
}

#[test]
fn accounts_take_metadata_before_they_take_money() {
    check(
        "set a tier=gold
         metadata a tier=gold
         set a
         world -> b USD 1 and a tier=silver,since=today and c k=v
         metadata a tier=silver,since=today
         metadata c k=v
         unset a tier
         unset a tier
         unset nobody k
         metadata a since=today",
    );
}

#[test]
fn a_refused_transaction_writes_no_metadata() {
    check(
        "poor -> b USD 1 and a k=v    refused: insufficient funds in poor
         metadata a none",
    );
}
