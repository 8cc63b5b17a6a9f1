//! Postings of scripts: how sources pay, destinations receive, and shares divide.

use ledger_core::script::{Options, Profile};

use super::{check, check_with, printed, run};

#[test]
fn sources_pay_in_order() {
    let two = "send [PEAR 10] (source = { @bowl @tree } destination = @pie)";
    check(two, "bowl PEAR 4\ntree PEAR 90", "bowl -> pie PEAR 4\ntree -> pie PEAR 6");
    check(two, "bowl PEAR 14", "bowl -> pie PEAR 10");
    check(
        two,
        "bowl PEAR -4\ntree PEAR 9",
        "MissingFundsErr: 1:26 Not enough funds. Needed [PEAR 10] (only [PEAR 9] available)",
    );
    check(
        "send [PEAR 10] (source = { max [PEAR 3] from @tree @bowl allowing overdraft up to [PEAR 2] @world } destination = @pie)",
        "bowl PEAR 1\ntree PEAR 90",
        "tree -> pie PEAR 3\nbowl -> pie PEAR 3\nworld -> pie PEAR 4",
    );
    // An account listed twice pays once, and adjacent funds become one posting.
    check(
        "send [PEAR 9] (source = { max [PEAR 5] from @bowl @bowl @tree @bowl } destination = @pie)",
        "bowl PEAR 8\ntree PEAR 5",
        "bowl -> pie PEAR 8\ntree -> pie PEAR 1",
    );
}

#[test]
fn sends_all_available_funds_and_overdrafts() {
    let all = "send [PEAR *] (source = { @bowl allowing overdraft up to [PEAR 5] max [PEAR 2] from @world } destination = @pie)";
    check(all, "bowl PEAR 3", "bowl -> pie PEAR 8\nworld -> pie PEAR 2");
    check(all, "bowl PEAR -6", "world -> pie PEAR 2");
    check("send [PEAR *] (source = @bowl destination = @pie)", "", "");
    let endless = "send [PEAR *] (source = @bowl allowing unbounded overdraft destination = @pie)";
    check(endless, "", "InvalidUnboundedInSendAll: 1:25 cannot take all balance from an unbounded source");
    let halves = "send [PEAR *] (source = { 1/2 from @bowl remaining from @tree } destination = @pie)";
    check(halves, "", "InvalidAllotmentInSendAll: 1:25 cannot take all balance of an allotment source");
}

#[test]
fn divides_exactly_and_rest_goes_to_first_shares() {
    let split = |amount: u32, shares: &str| {
        format!("send [PEAR {amount}] (source = @world destination = {{ {shares} }})")
    };
    check(
        &split(11, "1/4 to @a 1/4 to @b remaining to @c"),
        "",
        "world -> a PEAR 3\nworld -> b PEAR 3\nworld -> c PEAR 5",
    );
    check(&split(1, "0% to @a 1/2 to @b 1/2 to @c"), "", "world -> a PEAR 1");
    check(&split(7, "remaining to @a 99.9% to @b"), "", "world -> a PEAR 1\nworld -> b PEAR 6");
    check(&split(8, "2/3 to @a 1/3 kept"), "", "world -> a PEAR 6");
    check(
        &split(8, "2/3 to @a 2/3 to @b"),
        "",
        "BadAllotmentSum: 1:46 Allotment portions do not make one whole (got 4/3)",
    );
    check(
        &split(8, "3/2 to @a -1/2 to @b"),
        "",
        "InvalidPortion: 1:48 Invalid portion: 3/2 is not between 0% and 100%",
    );
    check(
        &split(8, "remaining to @a remaining to @b"),
        "",
        "DuplicateRemaining: 1:64 two 'remaining' clauses in one allotment",
    );
    let by_number = format!("vars {{ number $n }} {}", split(12, "$n/4 to @a remaining to @b"));
    check_with(&by_number, "n=3", "", "world -> a PEAR 9\nworld -> b PEAR 3");
    check_with(&by_number, "n=5", "", "InvalidPortion: 1:68 Invalid portion: 5/4 is not between 0% and 100%");
    check_with(
        &by_number,
        "n=-1",
        "",
        "InvalidPortion: 1:68 Invalid portion: -1/4 is not between 0% and 100%",
    );
    // A share of a source is paid in full or not at all.
    check(
        "send [PEAR 10] (source = { { 1/2 from @bowl remaining from @tree } @world } destination = @pie)",
        "bowl PEAR 4\ntree PEAR 50",
        "MissingFundsErr: 1:39 Not enough funds. Needed [PEAR 5] (only [PEAR 4] available)",
    );
}

#[test]
fn keeps_the_funds_that_come_last() {
    check(
        "send [PEAR 10] (source = { @bowl @tree } destination = { max [PEAR 6] kept remaining to @pie })
         send [PEAR 2] (source = @tree destination = @jam)",
        "bowl PEAR 5\ntree PEAR 5",
        "bowl -> pie PEAR 4\ntree -> jam PEAR 2",
    );
    let interpreter = Options { profile: Profile::Interpreter, ..Options::default() };
    let kept =
        "send [PEAR 10] (source = { @bowl @tree } destination = { max [PEAR 6] kept remaining to @pie })";
    let outcome = run(kept, "", "bowl PEAR 5\ntree PEAR 5", interpreter);
    assert_eq!(printed(&outcome), "tree -> pie PEAR 4");
}

#[test]
fn fills_destinations_in_order_or_one_of_them() {
    let to = |destination: &str| format!("send [PEAR 10] (source = @world destination = {destination})");
    check(
        &to(
            "{ max [PEAR 3] to @a max [PEAR -1] to @b max [PEAR 4] to { 1/2 to @c 1/2 to @d } remaining to @e }",
        ),
        "",
        "world -> a PEAR 3\nworld -> c PEAR 2\nworld -> d PEAR 2\nworld -> e PEAR 3",
    );
    check(&to("oneof { max [PEAR 9] to @a max [PEAR 10] to @b remaining to @c }"), "", "world -> b PEAR 10");
    check(&to("oneof { max [PEAR 9] to @a remaining to @c }"), "", "world -> c PEAR 10");
    check(
        &to("{ max [PLUM 9] to @a remaining to @c }"),
        "",
        "MismatchedCurrencyError: 1:53 Mismatched currency (expected 'PEAR', got 'PLUM' instead)",
    );
}

#[test]
fn one_of_several_sources_pays_alone() {
    let one = "send [PEAR 6] (source = oneof { @bowl { @bowl @tree } @world } destination = @pie)";
    check(one, "bowl PEAR 6", "bowl -> pie PEAR 6");
    check(one, "bowl PEAR 5\ntree PEAR 1", "bowl -> pie PEAR 5\ntree -> pie PEAR 1");
    check(one, "bowl PEAR 5", "world -> pie PEAR 6");
    check(
        "send [PEAR 6] (source = oneof { @bowl @tree } destination = @pie)",
        "bowl PEAR 5\ntree PEAR 4",
        "MissingFundsErr: 1:25 Not enough funds. Needed [PEAR 6] (only [PEAR 4] available)",
    );
}

#[test]
fn colors_separate_funds() {
    check(
        "send [PEAR 7] (source = { @bowl \\ \"RED\" @bowl } destination = @pie)
         send [PEAR *] (source = @pie \\ \"RED\" destination = @jam)",
        "bowl PEAR 9\nbowl PEAR RED 3",
        "bowl -> pie PEAR RED 3\nbowl -> pie PEAR 4\npie -> jam PEAR RED 3",
    );
    check(
        "send [PEAR 1] (source = @bowl \\ \"red\" destination = @pie)",
        "",
        "InvalidColor: 1:33 Invalid color name: 'red'. Only uppercase letters are allowed.",
    );
}

#[test]
fn scaling_converts_other_precisions() {
    check(
        "send [OIL/1 25] (source = @tank with scaling through @pump destination = @car)",
        "tank OIL 1\ntank OIL/1 2\ntank OIL/3 750",
        "MissingFundsErr: 1:27 Not enough funds. Needed [OIL/1 25] (only [OIL/1 19] available)",
    );
    check(
        "send [OIL/1 15] (source = @tank with scaling through @pump destination = @car)",
        "tank OIL 1\ntank OIL/1 2\ntank OIL/3 750",
        "tank -> pump OIL/3 700\ntank -> pump OIL 1\npump -> tank OIL/1 17\ntank -> car OIL/1 15",
    );
    check(
        "send [OIL/1 15] (source = @tank with scaling through @pump destination = @car)",
        "tank OIL/99999 1",
        "ScaleOutOfRange: 1:27 OIL/99999 is too far from the precision that is sent to be scaled",
    );
}

#[test]
fn saved_funds_are_not_spent() {
    check(
        "save [PEAR 4] from @bowl send [PEAR *] (source = @bowl destination = @pie)",
        "bowl PEAR 9",
        "bowl -> pie PEAR 5",
    );
    check(
        "save [PEAR *] from @bowl send [PEAR 3] (source = @bowl allowing overdraft up to [PEAR 8] destination = @pie)",
        "bowl PEAR -5",
        "bowl -> pie PEAR 3",
    );
    check("save -[PEAR 1] from @bowl", "", "NegativeAmountErr: 1:6 Cannot send negative amount: -1");
}

#[test]
fn later_statements_see_earlier_ones() {
    check(
        "send [PEAR 5] (source = @world destination = @bowl)
         send [PEAR *] (source = @bowl destination = @pie)",
        "bowl PEAR 2",
        "world -> bowl PEAR 5\nbowl -> pie PEAR 7",
    );
    // Funds that arrive in a send cannot leave in the same send.
    check(
        "send [PEAR 5] (source = { max [PEAR 3] from @world @bowl } destination = @bowl)",
        "",
        "MissingFundsErr: 1:25 Not enough funds. Needed [PEAR 5] (only [PEAR 3] available)",
    );
    check(
        "send [PEAR 5] (source = @world destination = @bowl)
         send balance(@bowl, PEAR) (source = @world destination = @jar)",
        "bowl PEAR 2",
        "world -> bowl PEAR 5\nworld -> jar PEAR 7",
    );
}

#[test]
fn machine_profile_moves_entries_of_zero() {
    let options = Options { profile: Profile::Machine, ..Options::default() };
    let check = |script: &str, books: &str, expected: &str| {
        assert_eq!(printed(&run(script, "", books, options)), expected, "{script}");
    };
    // Saving more than the balance also saves later receipts; saving all of a debt leaves no debt.
    let more = "save [PEAR 7] from @a send [PEAR 5] (source = @world destination = @a) send [PEAR 4] (source = @a destination = @b)";
    check(more, "a PEAR 6", "world -> a PEAR 5\na -> b PEAR 4");
    check(
        more,
        "a PEAR 5",
        "MissingFundsErr: 1:96 Not enough funds. Needed [PEAR 4] (only [PEAR 3] available)",
    );
    check(
        "save [PEAR *] from @a send [PEAR 2] (source = @a allowing overdraft up to [PEAR 2] destination = @b)",
        "a PEAR -9",
        "a -> b PEAR 2",
    );
    let three = "send [PEAR 9] (source = { @a @b @c } destination = @d)";
    check(three, "a PEAR 4\nc PEAR 9", "a -> d PEAR 4\nb -> d PEAR 0\nc -> d PEAR 5");
    check(three, "a PEAR 9", "a -> d PEAR 9");
    check(
        three,
        "a PEAR 4\nc PEAR 4",
        "MissingFundsErr: 1:25 Not enough funds. Needed [PEAR 9] (only [PEAR 8] available)",
    );
    check("send [PEAR 9] (source = { @a @world } destination = @d)", "", "a -> d PEAR 0\nworld -> d PEAR 9");
    check("send [PEAR 0] (source = { @b @a } destination = @d)", "a PEAR 1", "b -> d PEAR 0");
    check("send [PEAR *] (source = @a destination = @d)", "a PEAR -3", "a -> d PEAR 0");
    check(
        "send [PEAR 9] (source = { max [PEAR 5] from @a allowing unbounded overdraft @b allowing unbounded overdraft }
         destination = { max [PEAR 6] kept remaining to @e })
         send [PEAR 2] (source = { 1/2 from @world 1/2 from @c } destination = @e)",
        "a PEAR 2\nc PEAR 5",
        "a -> e PEAR 3\nworld -> e PEAR 1\nc -> e PEAR 1",
    );
}
