//! Dry runs and undone submissions leave nothing in memory.

use super::*;

/// Returns the bytes of accounts that the writer counts.
fn counted(engine: &Engine) -> usize {
    engine.decider.lock().accounts.bytes()
}

fn done(engine: &Engine, command: Command, mode: Mode) {
    let outcomes = apply(engine, vec![command], Atomicity::Independent, mode).expect("an outcome");
    assert!(matches!(outcomes[..], [Outcome::Done(_)]), "{outcomes:?}");
}

#[test]
fn dry_runs_of_large_metadata_leave_no_bytes() {
    let (engine, _) = engine(&Options::default());
    let large = "x".repeat(60_000);
    done(&engine, payment("world", "users:1", ""), Mode::Commit);
    let before = counted(&engine);
    for _ in 0..1_000 {
        done(&engine, set_metadata("users:1", "note", &large), Mode::DryRun);
    }
    assert_eq!(counted(&engine), before);
}

#[test]
fn dry_runs_of_removals_leave_all_bytes_counted() {
    let (engine, _) = engine(&Options::default());
    let large = "x".repeat(60_000);
    let users: Vec<String> = (0..20).map(|user| format!("users:{user}")).collect();
    for user in &users {
        done(&engine, set_metadata(user, "note", &large), Mode::Commit);
    }
    let before = counted(&engine);
    assert!(before > 20 * large.len(), "{before}");
    for user in users.iter().cycle().take(1_000) {
        done(&engine, delete_metadata(user, "note"), Mode::DryRun);
    }
    assert_eq!(counted(&engine), before);
}

#[test]
fn an_undone_submission_leaves_no_bytes() {
    let (engine, _) = engine(&Options::default());
    let large = "x".repeat(60_000);
    done(&engine, payment("world", "users:1", ""), Mode::Commit);
    let before = counted(&engine);
    for at in 0..100 {
        let mut commands = vec![set_metadata("users:1", "note", &large)];
        // This adds a holding to an existing account, and a reference.
        commands.push(payment("world", "users:1", &format!("payment {at}")));
        commands.push(payment("users:2", "users:3", ""));
        let outcomes = apply(&engine, commands, Atomicity::AllOrNothing, Mode::Commit).expect("an outcome");
        assert!(matches!(outcomes[..], [Outcome::Cancelled, Outcome::Cancelled, Outcome::Refused(_)]));
    }
    assert_eq!(counted(&engine), before);
    engine.check_bytes().expect("the counts are right");
}
