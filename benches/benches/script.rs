//! Benchmark of scripts: the cost of compiling one, and of running a compiled one. Nothing is durable here.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ledger_core::script::{Options, Profile, Program, Progress, Reads, Run, Scratch, Variables, parse};
use ledger_core::{AccountAddress, Balance, MetadataValue, SmolStr};

/// A script of typical length for a real application.
const TYPICAL: &str = "\
// Pays a rent from three accounts, and never more than they hold.
vars {
  account $tenant
  account $landlord = meta(@flats:12, \"landlord\")
  monetary $rent
  monetary $saved = balance(@tenants:deposit, EUR/2)
}

send $rent (
  source = {
    max $saved from @tenants:deposit
    $tenant
    {
      $tenant allowing overdraft up to [EUR/2 10000]
      @world
    }
  }
  destination = {
    max [EUR/2 5000] to @agency:fees
    remaining to $landlord
  }
)
set_tx_meta(\"kind\", \"rent\")
";

/// A split in three parts with a fee, from an account that may go into overdraft.
const SPLIT: &str = "\
vars {
  account $buyer
  monetary $price
  portion $fee
}
send $price (
  source = $buyer allowing overdraft up to [USD/2 100000]
  destination = {
    $fee to @platform:fees
    1/4 to @sellers:first
    1/4 to @sellers:second
    remaining to @sellers:third
  }
)
";

/// An account with a fixed balance.
struct Purse(Balance);

impl Reads for Purse {
    type Error = std::convert::Infallible;

    fn balance(&mut self, _: &AccountAddress, _: &str, _: &str) -> Result<Balance, Self::Error> {
        Ok(self.0.clone())
    }

    fn scales(&mut self, _: &AccountAddress, _: &str) -> Result<Vec<(SmolStr, Balance)>, Self::Error> {
        Ok(Vec::new())
    }

    fn metadata(&mut self, _: &AccountAddress, _: &str) -> Result<Option<MetadataValue>, Self::Error> {
        Ok(None)
    }
}

fn parsing(criterion: &mut Criterion) {
    assert!(parse(TYPICAL).1.is_empty(), "it is a script");
    let mut group = criterion.benchmark_group("script, in memory");
    group.bench_function("parse a typical script", |bencher| bencher.iter(|| parse(black_box(TYPICAL))));
    group.bench_function("compile a recipe", |bencher| {
        bencher.iter(|| Program::compile(black_box(TYPICAL), Profile::Default));
    });
    group.finish();
}

fn running(criterion: &mut Criterion) {
    let program = Program::compile(SPLIT, Profile::Default).expect("a script");
    let variables: Variables = [("buyer", "users:0001"), ("price", "USD/2 12345"), ("fee", "2.5%")]
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    let mut purse = Purse(Balance::from(5_000));
    let mut scratch = Scratch::default();
    let mut group = criterion.benchmark_group("script, in memory");
    group.bench_function("run a compiled split", |bencher| {
        bencher.iter(|| {
            let mut run = Run::new(&program, black_box(&variables), Options::default(), &mut scratch);
            while run.advance().expect("it works") == Progress::Needs {
                run.answer(&mut purse).expect("a purse always answers");
            }
            black_box(run.ledger_postings().expect("an asset of a ledger"))
        });
    });
    group.finish();
}

criterion_group!(benches, parsing, running);
criterion_main!(benches);
