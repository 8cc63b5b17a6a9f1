//! Runs the targets without the fuzzer, on their corpus and on a limited number of generated inputs.

use std::fs;
use std::path::Path;

use ledger_testkit::Rng;

/// Returns the corpus of a target in a fixed order.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(dir)
        .expect("a target has a corpus")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target} has no corpus");
    paths.iter().map(|path| fs::read(path).expect("a file")).collect()
}

/// Mutates an input of the corpus, or generates random bytes.
fn mutated(corpus: &[Vec<u8>], rng: &mut Rng<'_>) -> Vec<u8> {
    let mut data = match rng.below(4) {
        0 => (0..rng.below(300)).map(|_| rng.below(256) as u8).collect(),
        _ => corpus[rng.below(corpus.len() as u64) as usize].clone(),
    };
    for _ in 0..rng.below(6) {
        let at = rng.below(data.len() as u64 + 1) as usize;
        match rng.below(4) {
            0 => data.truncate(at),
            1 => data.insert(at, rng.below(256) as u8),
            2 if at < data.len() => {
                data.remove(at);
            }
            _ if at < data.len() => data[at] ^= 1 << rng.below(8),
            _ => data.push(rng.below(256) as u8),
        }
    }
    data
}

fn replay(target: &str, seeds: u64) {
    let (_, run) = fuzz::TARGETS.iter().find(|(name, _)| *name == target).expect("a target");
    let corpus = corpus(target);
    corpus.iter().for_each(|data| run(data));
    // The variable allows longer campaigns without a fuzzer.
    let seeds = std::env::var("FUZZ_INPUTS").ok().and_then(|count| count.parse().ok()).unwrap_or(seeds);
    for seed in 0..seeds {
        run(&mutated(&corpus, &mut Rng::from_seed(seed)));
    }
}

#[test]
fn address_filter() {
    replay("address_filter", 50_000);
}

#[test]
fn journal_chunk() {
    replay("journal_chunk", 50_000);
}

#[test]
fn ledger_model() {
    replay("ledger_model", 150);
}

#[test]
fn script_parse() {
    replay("script_parse", 50_000);
}

#[test]
fn script_run() {
    replay("script_run", 50_000);
}

#[test]
fn timestamp() {
    replay("timestamp", 50_000);
}

#[test]
fn cursor() {
    replay("cursor", 50_000);
}

#[test]
fn filter_parse() {
    replay("filter_parse", 50_000);
}

#[test]
fn import_line() {
    replay("import_line", 2_000);
}

#[test]
fn request() {
    replay("request", 3_000);
}

#[test]
fn token_parse() {
    replay("token_parse", 50_000);
}

#[test]
fn authorization_header() {
    replay("authorization_header", 50_000);
}

#[test]
fn oauth_form() {
    replay("oauth_form", 50_000);
}

#[test]
fn payment_filter() {
    replay("payment_filter", 50_000);
}

#[test]
fn provider_answer() {
    replay("provider_answer", 20_000);
}

#[test]
fn corpus_requests_are_valid() {
    // Mutations should break good requests in one place only.
    let corpus = corpus("request");
    let good =
        corpus.iter().filter(|data| fuzz::request::answered(data).is_some_and(|status| status < 300)).count();
    assert!(good * 5 > corpus.len() * 4, "{good} of {}", corpus.len());
}
