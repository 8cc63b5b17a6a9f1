//! Random scripts.

use ledger_core::Script;

use super::Workload;
use crate::fixtures::{self, KEYS};

impl Workload<'_> {
    pub(super) fn script(&mut self) -> Script {
        let (asset, other) = (fixtures::asset(&mut self.rng), fixtures::asset(&mut self.rng));
        let (a, b, c) = (self.address(), self.address(), self.address());
        let key = self.rng.pick(&KEYS);
        let amount = self.rng.below(1_000);
        let statement = match self.rng.below(8) {
            0 => format!("send [{asset} *] (source = {{ @{a} @{b} }} destination = @{c})"),
            1 => format!(
                "send $amount (source = {{ max [{asset} 9] from @{a} @{b} @world }}
                 destination = {{ 1/3 to @{c} 1/7 kept remaining to $to }})"
            ),
            2 => format!(
                "send $amount (source = @{a} allowing overdraft up to [{asset} 500] destination = $to)"
            ),
            3 => format!(
                "send $amount (source = @world destination = $to) set_account_meta($to, \"{key}\", $amount)
                 set_tx_meta(\"asset\", get_asset($amount)) set_tx_meta(\"amount\", get_amount($amount))"
            ),
            4 => format!(
                "set_tx_meta(\"{key}\", overdraft(@{b}, {other})) send $amount (source = @world destination = @{b})"
            ),
            5 => format!(
                "send $amount (source = oneof {{ @{a} @{b} {{ @{a} @{b} @{c} }} }} destination = $to)"
            ),
            6 => format!("save [{asset} 100] from @{a} send [{asset} *] (source = @{a} destination = $to)"),
            _ => format!(
                "send $amount (source = @world \\ \"RED\" destination = @{a}) send [{asset} *] (source = @{a} \\ \"RED\" destination = $to)"
            ),
        };
        let plain = match self.rng.below(6) {
            0 => format!(
                "vars {{ account $to monetary $amount monetary $known = balance(@{a}, {other}) }} {statement} set_tx_meta(\"known\", $known)"
            ),
            1 => format!(
                "vars {{ account $to monetary $amount string $read = meta(@{a}, \"{key}\") }} {statement} set_tx_meta(\"read\", $read)"
            ),
            _ => format!("vars {{ account $to monetary $amount }} {statement}"),
        };
        let variables = [
            ("to".to_owned(), self.address().to_string()),
            ("amount".to_owned(), format!("{asset} {amount}")),
        ];
        Script::new(plain, variables.into())
    }
}

#[cfg(test)]
mod tests {
    use ledger_core::script::function_names;

    use super::*;
    use crate::Rng;

    #[test]
    fn random_scripts_call_every_function() {
        let mut work = Workload::new(Rng::from_seed(1));
        let scripts: Vec<String> = (0..200).map(|_| work.script().plain).collect();
        let is_called = |name: &str| scripts.iter().any(|text| text.contains(&format!("{name}(")));
        let missing: Vec<&str> = function_names().filter(|name| !is_called(name)).collect();
        assert!(missing.is_empty(), "no random script calls {missing:?}");
    }
}
