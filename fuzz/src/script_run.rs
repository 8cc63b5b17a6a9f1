//! Fuzz target: well-formed scripts obey the laws of money for any balances.
//!
//! The bytes determine the script. The generator knows its accounts and limits, so that the target checks the
//! laws without a second engine: the requested amount is delivered, no account exceeds its overdraft, and
//! equal inputs have equal outcomes, also with a reused scratch.

use std::collections::BTreeMap;
use std::convert::Infallible;

use ledger_core::script::{
    ErrorClass, Options, Outcome, Profile, Program, Progress, Reads, Run, Scratch, ScriptError, Tracing,
    Variables,
};
use ledger_core::{AccountAddress, Amount, Balance, MetadataValue, SmolStr};
use ledger_testkit::Rng;

/// Generates a script, balances and variables from the bytes, runs the script, and checks its outcome.
pub fn run(data: &[u8]) {
    let mut rng = Rng::from_bytes(data);
    let mut generator = ScriptGenerator { rng: &mut rng, limits: BTreeMap::new(), asked: Some(0), depth: 0 };
    let text = generator.program();
    let (limits, asked) = (generator.limits, generator.asked);
    let balances = Balances::of(&mut rng);
    let program = Program::compile(&text, Profile::Default).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut scratch = Scratch::default();
    let variables = Variables::from([
        ("who".to_owned(), account(rng.below(ACCOUNTS))),
        ("much".to_owned(), format!("COIN {}", rng.below(100))),
        ("part".to_owned(), format!("{}/7", rng.below(8))),
    ]);
    // The other profiles give different outcomes, and must not panic.
    for profile in [Profile::Interpreter, Profile::Machine] {
        if let Ok(program) = Program::compile(&text, profile) {
            drop(execute(&program, &variables, &balances, Tracing::On, &mut scratch));
        }
    }
    let first = execute(&program, &variables, &balances, Tracing::Off, &mut scratch);
    let second = execute(&program, &variables, &balances, Tracing::On, &mut scratch);
    match (first, second) {
        (Ok(first), Ok(mut second)) => {
            let trace = second.trace.take().expect("it was asked for");
            assert_eq!(first, second, "{text}");
            assert_eq!(trace.postings.len(), first.postings.len(), "{text}");
            for (posting, made) in first.postings.iter().zip(&trace.postings) {
                let sum = made.sources.iter().fold(Amount::ZERO, |sum, (_, amount)| sum + amount);
                assert_eq!(sum, posting.posting.amount, "{text}");
            }
            oracle(&first, &balances, &variables["who"], &limits, asked, &text);
        }
        (Err(first), Err(second)) => {
            assert_eq!(first, second, "{text}");
            let class = first.kind.class();
            assert!(
                matches!(class, ErrorClass::Funds | ErrorClass::Script | ErrorClass::Balance),
                "{first}\n{text}"
            );
        }
        (first, second) => panic!("{first:?} and {second:?}\n{text}"),
    }
}

/// Checks the laws of money on an outcome. `limits` and `asked` are those of the [`ScriptGenerator`]; `who` is the
/// value of the variable `$who`.
fn oracle(
    outcome: &Outcome,
    initial: &Balances,
    who: &str,
    limits: &BTreeMap<String, Option<u64>>,
    asked: Option<u64>,
    text: &str,
) {
    let mut balances = initial.0.clone();
    let mut delivered = Amount::ZERO;
    let mut lowest: BTreeMap<(String, String), Balance> = BTreeMap::new();
    for posting in &outcome.postings {
        let (moved, color) = (&posting.posting, posting.color.to_string());
        assert!(!moved.amount.is_zero(), "{text}");
        assert_eq!(moved.asset.as_str(), "COIN", "{text}");
        delivered += &moved.amount;
        let source = balances.entry((moved.source.to_string(), color.clone())).or_default();
        *source += &Balance::of(&Amount::ZERO, &moved.amount);
        let low = lowest.entry((moved.source.to_string(), color.clone())).or_default();
        *low = source.clone().min(low.clone());
        *balances.entry((moved.destination.to_string(), color)).or_default() +=
            &Balance::from(moved.amount.clone());
    }
    for ((account, color), low) in lowest {
        let clause = if account == who { "$who" } else { account.as_str() };
        let limit = match (limits.get(clause), limits.get(&account)) {
            (Some(None), _) | (_, Some(None)) => continue,
            (a, b) => a.into_iter().chain(b).flatten().copied().max().unwrap_or(0),
        };
        if account == "world" {
            continue;
        }
        let started = initial.0.get(&(account.clone(), color.clone())).cloned().unwrap_or_default();
        let floor = Balance::from(-(limit as i64)).min(started);
        assert!(low >= floor, "{account} went to {low}, below {floor}\n{text}");
    }
    if let Some(asked) = asked {
        assert_eq!(delivered, Amount::from(asked), "{text}");
    }
}

fn execute(
    program: &Program,
    variables: &Variables,
    balances: &Balances,
    trace: Tracing,
    scratch: &mut Scratch,
) -> Result<Outcome, ScriptError> {
    let mut run = Run::new(program, variables, Options { trace, ..Options::default() }, scratch);
    let mut rounds = 0;
    while run.advance()? == Progress::Needs {
        rounds += 1;
        // At most one round for metadata and one for balances.
        assert!(rounds < 4, "{}", program.text());
        let mut reads = balances.clone();
        match run.answer(&mut reads) {
            Ok(()) => {}
            Err(impossible) => match impossible {},
        }
    }
    Ok(run.outcome())
}

const ACCOUNTS: u64 = 5;

fn account(number: u64) -> String {
    format!("a{number}")
}

/// Balances of coins by account and colour.
#[derive(Clone)]
struct Balances(BTreeMap<(String, String), Balance>);

impl Balances {
    fn of(rng: &mut Rng<'_>) -> Self {
        let mut balances = BTreeMap::new();
        for number in 0..ACCOUNTS {
            for color in ["", "RED"] {
                let balance = rng.below(120) as i64 - 20;
                balances.insert((account(number), color.to_owned()), Balance::from(balance));
            }
        }
        Self(balances)
    }
}

impl Reads for Balances {
    type Error = Infallible;

    fn balance(&mut self, account: &AccountAddress, _: &str, color: &str) -> Result<Balance, Infallible> {
        Ok(self.0.get(&(account.to_string(), color.to_owned())).cloned().unwrap_or_default())
    }

    fn scales(&mut self, _: &AccountAddress, _: &str) -> Result<Vec<(SmolStr, Balance)>, Infallible> {
        Ok(Vec::new())
    }

    fn metadata(&mut self, _: &AccountAddress, _: &str) -> Result<Option<MetadataValue>, Infallible> {
        Ok(Some(MetadataValue::Text("a1".into())))
    }
}

/// Generates scripts.
struct ScriptGenerator<'m, 'd> {
    rng: &'m mut Rng<'d>,
    /// Maximum overdraft that the script allows each account, by its name or by `$who`; `None` without a limit.
    limits: BTreeMap<String, Option<u64>>,
    /// The sum of the amounts that the script sends, or `None` if it depends on balances or variables, or if the
    /// script keeps a part.
    asked: Option<u64>,
    depth: u32,
}

impl ScriptGenerator<'_, '_> {
    fn program(&mut self) -> String {
        let mut text =
            "vars { account $who monetary $much portion $part account $read = meta(@a0, \"k\") }\n"
                .to_owned();
        for _ in 0..=self.rng.below(4) {
            let statement = match self.rng.below(8) {
                0 => {
                    let account = self.account();
                    format!("save [COIN {}] from {account}", self.rng.below(30))
                }
                1 => "set_tx_meta(\"k\", $much)".to_owned(),
                _ => self.send(),
            };
            text = text + &statement + "\n";
        }
        text
    }

    fn send(&mut self) -> String {
        let amount = match self.rng.below(4) {
            0 => {
                self.asked = None;
                "[COIN *]".to_owned()
            }
            1 => {
                self.asked = None;
                "$much".to_owned()
            }
            _ => {
                let amount = self.rng.below(200);
                self.asked = self.asked.map(|asked| asked + amount);
                format!("[COIN {amount}]")
            }
        };
        let source = if amount.ends_with("*]") { self.bounded_source() } else { self.source() };
        let destination = self.destination();
        format!("send {amount} (source = {source} destination = {destination})")
    }

    fn account(&mut self) -> String {
        match self.rng.below(ACCOUNTS + 2) {
            n if n < ACCOUNTS => format!("@{}", account(n)),
            n if n == ACCOUNTS => "$who".to_owned(),
            _ => "$read".to_owned(),
        }
    }

    /// Generates a source with a limited amount. `send [COIN *]` accepts no other.
    fn bounded_source(&mut self) -> String {
        let account = self.account();
        match self.rng.below(3) {
            0 => account,
            1 => format!("max [COIN {}] from {}", self.rng.below(90), self.source()),
            _ => {
                let limit = self.rng.below(50);
                self.limit(&account, Some(limit));
                format!("{account} allowing overdraft up to [COIN {limit}]")
            }
        }
    }

    /// Records that the script allows an account an overdraft. The largest one counts.
    fn limit(&mut self, account: &str, limit: Option<u64>) {
        let account = if account == "$read" { "@a1" } else { account };
        let known = self.limits.entry(account.trim_start_matches('@').to_owned()).or_insert(Some(0));
        *known = match (*known, limit) {
            (Some(known), Some(limit)) => Some(known.max(limit)),
            _ => None,
        };
    }

    fn source(&mut self) -> String {
        self.depth += 1;
        let choice = if self.depth > 4 { self.rng.below(4) } else { self.rng.below(9) };
        let text = match choice {
            0 => "@world".to_owned(),
            1 => self.bounded_source(),
            2 => {
                let account = self.account();
                self.limit(&account, None);
                format!("{account} allowing unbounded overdraft")
            }
            3 => format!("{} \\ \"RED\"", self.account()),
            4 => format!("max [COIN {}] from {}", self.rng.below(90), self.source()),
            5 | 6 => {
                let sources: Vec<_> = (0..self.rng.below(4)).map(|_| self.source()).collect();
                format!("{{ {} }}", sources.join("\n"))
            }
            7 => {
                let sources: Vec<_> = (0..=self.rng.below(3)).map(|_| self.source()).collect();
                format!("oneof {{ {} }}", sources.join("\n"))
            }
            _ => {
                let shares = self.shares();
                let items: Vec<_> =
                    shares.iter().map(|share| format!("{share} from {}", self.source())).collect();
                format!("{{ {} }}", items.join("\n"))
            }
        };
        self.depth -= 1;
        text
    }

    /// Generates shares that add up to one. The variable `$part` is at most one.
    fn shares(&mut self) -> Vec<String> {
        match self.rng.below(4) {
            0 => vec!["1/3".into(), "1/3".into(), "1/3".into()],
            1 => vec!["12.5%".into(), "remaining".into()],
            2 => vec!["$part".into(), "remaining".into(), "0%".into()],
            _ => vec!["remaining".into(), "1/2".into()],
        }
    }

    fn destination(&mut self) -> String {
        self.depth += 1;
        let choice = if self.depth > 4 { 0 } else { self.rng.below(5) };
        let text = match choice {
            0 | 1 => {
                if self.rng.below(4) == 0 {
                    "@world".to_owned()
                } else {
                    self.account()
                }
            }
            2 => {
                let items: Vec<_> =
                    self.shares().into_iter().map(|share| format!("{share} {}", self.target())).collect();
                format!("{{ {} }}", items.join("\n"))
            }
            n => {
                let clauses: Vec<_> = (0..self.rng.below(3))
                    .map(|_| format!("max [COIN {}] {}", self.rng.below(60), self.target()))
                    .collect();
                let oneof = if n == 3 { "oneof " } else { "" };
                format!("{oneof}{{ {} remaining {} }}", clauses.join("\n"), self.target())
            }
        };
        self.depth -= 1;
        text
    }

    fn target(&mut self) -> String {
        if self.rng.below(6) == 0 {
            self.asked = None;
            return "kept".to_owned();
        }
        format!("to {}", self.destination())
    }
}
