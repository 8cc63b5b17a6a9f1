//! A small language for scenarios of a ledger.
//!
//! Each line is a command or a question. Every command is one second later than the previous one.
//!
//! ```text
//! world -> users:1 USD/2 100 & users:1 -> shop USD/2 40   a transaction; & joins postings
//!     … force | reference R | dated 5 | with k=v | and users:1 k=v
//! nothing                                                  a transaction without postings
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
//! Every command runs through the rules and through the reference model, which must agree.

use ledger_core::model::Model;
use ledger_core::{
    AccountAddress, Asset, Balance, Command, CreateTransaction, HoldingVolumes, LedgerName, LogPayload,
    Metadata, Overdraft, Posting, Postings, Reference, Rejection, RevertDate, RevertTransaction, Target,
    Timestamp, TransactionId, Volumes,
};

use crate::memory_ledger::MemoryLedger;

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// The state of a scenario, in the rules and in the model.
struct Scenario {
    books: MemoryLedger,
    model: Model,
    ledger: LedgerName,
    seconds: i64,
}

/// Runs a scenario, and checks that all balances of each asset add up to zero.
#[track_caller]
pub(crate) fn check(scenario: &str) {
    let ledger = LedgerName::parse("main").unwrap();
    let mut run = Scenario { books: MemoryLedger::default(), model: Model::default(), ledger, seconds: 0 };
    for line in scenario.lines().map(str::trim).filter(|line| !line.is_empty()) {
        run.line(line);
    }
    for (asset, sum) in run.books.sums() {
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

impl Scenario {
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
        let mut modelled = self.model.execute(&self.ledger, &command, None, false, now);
        if let Ok(answer) = &mut modelled {
            match &mut answer.entry.payload {
                LogPayload::NewTransaction { effective_volumes, .. }
                | LogPayload::RevertedTransaction { effective_volumes, .. } => *effective_volumes = None,
                _ => {}
            }
        }
        assert_eq!(entry, modelled.map(|answer| answer.entry), "rules and model differ on {line}");
        entry.map(|_| ())
    }

    fn volumes(&self, account: &str, asset: &str) -> Volumes {
        let (account, asset) = (address(account), Asset::parse(asset).unwrap());
        let modelled = self.model.account(&self.ledger, &account, None);
        let modelled = modelled.and_then(|account| account.volumes.get(&asset).cloned()).unwrap_or_default();
        let kept = self.books.volumes.get(&(account, asset)).cloned().unwrap_or_default();
        assert_eq!(kept, modelled, "rules and model differ");
        kept
    }

    fn metadata(&self, target: &Target) -> Metadata {
        let (kept, modelled) = match target {
            Target::Account(account) => (
                self.books.accounts.get(account).cloned(),
                self.model.account(&self.ledger, account, None).map(|account| account.metadata),
            ),
            Target::Transaction(id) => (
                self.books.transactions.get(id).map(|known| known.metadata.clone()),
                self.model.transaction(&self.ledger, *id, None).map(|transaction| transaction.metadata),
            ),
        };
        assert_eq!(kept, modelled, "rules and model differ");
        kept.unwrap_or_default()
    }
}
