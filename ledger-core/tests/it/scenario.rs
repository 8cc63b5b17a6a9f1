//! Scenarios of a ledger: funds, reverts, references, dates and metadata. [`crate::scenario_language`] describes the
//! language, and runs each line through the rules and the reference model.

use crate::scenario_language::check;

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
fn balance_of_one_asset_does_not_pay_another() {
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
fn zero_can_be_moved_from_any_account() {
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
fn a_reference_names_one_transaction_forever() {
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
fn revert_needs_no_funds_in_intermediate_accounts() {
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
fn refuses_revert_paid_by_an_overdrawn_account() {
    check(
        "a -> b USD 10 force
         balance a USD -10
         a -> c USD 5 & c -> a USD 5 force
         revert 2    refused: insufficient funds in a
         reverted 2 no
         world -> a USD 3 & a -> world USD 1 force
         revert 3    refused: insufficient funds in a
         revert 2 force
         balance a USD -8
         revert 1
         balance a USD 2
         revert 3
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
fn chosen_dates_reorder_only_effective_volumes() {
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
fn equal_dates_count_in_order_of_insertion() {
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
