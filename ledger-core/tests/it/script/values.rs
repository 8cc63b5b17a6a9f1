//! Values of scripts: their text forms, their types, and the origins of variables.

use ledger_core::script::{Language, Options, Profile, Program, Type, Variables};
use ledger_core::{
    AccountAddress, CreateTransaction, MetadataValue, Movement, Script, VariableValue, settle,
};

use super::{FixedLedger, check, check_with, run};

#[test]
fn values_are_exact_and_keep_their_text() {
    let script = "vars { account $a number $n portion $p string $s }
        set_tx_meta(\"account\", @x:$a:$n:$s) set_tx_meta(\"number\", $n - 1_000 + 2)
        set_tx_meta(\"portion\", $p) set_tx_meta(\"sum\", [PEAR/2 $n] - [PEAR/2 1])
        set_tx_meta(\"asset\", get_asset([PEAR/2 1])) set_tx_meta(\"amount\", get_amount(-[PEAR 5]))
        set_tx_meta(\"text\", \"tab\\t\\u00e9\\\"\") set_account_meta($a, \"k\", 6/4)";
    let huge = "123456789012345678901234567890";
    let outcome =
        run(script, &format!("a=y:z n={huge} p=12.5% s=w"), "", Options::default()).expect("it works");
    let texts: Vec<(&str, &str)> = outcome.metadata.iter().map(|(key, value)| (key, value.text())).collect();
    assert_eq!(
        texts,
        [
            ("account", &*format!("x:y:z:{huge}:w")),
            ("amount", "-5"),
            ("asset", "PEAR/2"),
            ("number", "123456789012345678901234566892"),
            ("portion", "1/8"),
            ("sum", "PEAR/2 123456789012345678901234567889"),
            ("text", "tab\té\""),
        ]
    );
    let account = AccountAddress::parse("y:z").expect("an address");
    assert_eq!(outcome.account_metadata[&account].get("k").map(MetadataValue::text), Some("3/2"));
}

#[test]
fn variables_come_from_caller_or_ledger() {
    let script = "vars { account $shop account $owner = meta($shop, \"owner\") portion $cut = meta($owner, \"cut\")
        monetary $held = balance($shop, PEAR) } send $held (source = $shop destination = { $cut to $owner remaining kept })";
    check_with(script, "shop=s", "s.owner = o:1\no:1.cut = 1/4\ns PEAR 80", "s -> o:1 PEAR 20");
    check_with(
        script,
        "shop=s",
        "s.owner = o:1\ns PEAR 80",
        "MetadataNotFound: 1:75 account '@o:1' doesn't have metadata associated to the 'cut' key",
    );
    check_with(script, "", "", "MissingVariableErr: 1:16 Variable is missing in json: shop");
    check_with(
        script,
        "shop=s cut=1/2",
        "s.owner = o:1\no:1.cut = 1/4",
        "ExtraneousVariable: extraneous variable $cut",
    );
    check_with(script, "shop=s!", "", "InvalidAccountName: 1:16 Invalid account name: @s!");
    check_with(
        "vars { monetary $m }",
        "m=PEAR_-1",
        "",
        "InvalidVariable: 1:17 invalid value of variable $m: negative amount",
    );
    let typed = "vars { monetary $m = meta(@a, \"m\") } send $m (source = @world destination = @a)";
    check(
        typed,
        "a.m = {\"type\":\"monetary\",\"value\":{\"asset\":\"PEAR\",\"amount\":3}}",
        "world -> a PEAR 3",
    );
    let program = Program::compile(script, Profile::Default).expect("a script");
    assert_eq!(program.needed_variables().collect::<Vec<_>>(), [("shop", Type::Account)]);
}

#[test]
fn typed_values_fit_only_their_type() {
    let settled = |declared: &str, value: &VariableValue| {
        let plain =
            format!("vars {{ {declared} $v }} send [PEAR 1] (source = @world destination = @b) print $v");
        let mut create = CreateTransaction::of([].into_iter().collect());
        let compiled = Language::NUMSCRIPT.compile(&plain);
        let mut script = Script::new(plain, Variables::new());
        script.variables.insert("v".to_owned(), value.clone());
        create.movement = Movement::Script(script);
        let Ok(settled) = settle(&mut create, &compiled, &mut FixedLedger::of(""));
        settled.is_ok()
    };
    let types = ["account", "string", "number", "monetary"];
    for (value, fits) in [
        (VariableValue::Text("7".into()), [true, true, true, false]),
        (VariableValue::Number("7".into()), [false, false, true, false]),
        (VariableValue::Monetary("PEAR 7".into()), [false, false, false, true]),
        (VariableValue::Unfit, [false; 4]),
    ] {
        assert_eq!(types.map(|declared| settled(declared, &value)), fits, "{value:?}");
    }
}
