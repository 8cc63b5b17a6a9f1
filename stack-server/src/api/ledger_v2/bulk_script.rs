//! Parses bulks that are written as script blocks.
//!
//! A block begins with a line `//script`, optionally followed by `key=value` pairs divided by commas, and ends
//! with a line `//end` or with the text. Blank lines between blocks are skipped. The only key is `ik`.

use ledger_core::{Command, CreateTransaction, ErrorWording, Movement, Postings, Script};

use crate::api::ledger_v2::bulk_elements::{Action, Element, Elements};
use crate::http::error::ApiError;

/// Maximum number of bytes in a line. Other servers of this API have the same limit.
const LINE_BYTES_MAX: usize = 64 * 1_024;

/// Parses the blocks. The first malformed line ends the stream.
pub(crate) fn elements(body: &[u8], wording: ErrorWording) -> Elements {
    let mut elements = Elements::default();
    let text = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => {
            elements.fault = Some(ApiError::validation(format!("invalid script stream: {error}")));
            return elements;
        }
    };
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        match header(line).and_then(|key| Ok((key, block(&mut lines)?))) {
            Ok((key, plain)) => elements.push(element(plain, &key, wording)),
            Err(error) => {
                elements.fault = Some(error);
                break;
            }
        }
    }
    elements
}

/// Returns the idempotency key of a header line. The key is empty if the line has none.
fn header(line: &str) -> Result<String, ApiError> {
    let invalid = |reason: &str| ApiError::validation(format!("invalid header{reason}"));
    let rest = line.strip_prefix("//script").ok_or_else(|| invalid(""))?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return Err(invalid(""));
    }
    let mut key = String::new();
    for pair in rest.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("ik", _)) if !key.is_empty() => return Err(invalid(", idempotency key already set")),
            Some(("ik", value)) => value.clone_into(&mut key),
            Some((other, _)) => return Err(invalid(&format!(", key '{other}' not recognized"))),
            None => return Err(invalid("")),
        }
    }
    Ok(key)
}

/// Returns the lines up to `//end`.
fn block<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Result<String, ApiError> {
    let mut plain = String::new();
    for line in lines {
        if line.len() > LINE_BYTES_MAX {
            return Err(ApiError::validation(format!("a line has at most {LINE_BYTES_MAX} bytes")));
        }
        if line == "//end" {
            break;
        }
        plain.push_str(line);
        plain.push('\n');
    }
    Ok(plain)
}

fn element(plain: String, key: &str, wording: ErrorWording) -> Element {
    let script = Script { plain, wording, ..Script::default() };
    let create =
        CreateTransaction { movement: Movement::Script(script), ..CreateTransaction::of(Postings::new()) };
    Element::new(Action::CreateTransaction, Ok(Command::CreateTransaction(create)), key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<(String, String)>, Option<String>) {
        let Elements { requests, fault, .. } = elements(text.as_bytes(), ErrorWording::Machine);
        let blocks = requests.into_iter().map(|request| {
            let request = request.expect("a command");
            let key = request.idempotency.map_or(String::new(), |i| i.key.to_string());
            match request.command {
                Command::CreateTransaction(CreateTransaction {
                    movement: Movement::Script(script), ..
                }) => (key, script.plain),
                other => panic!("{other:?}"),
            }
        });
        (blocks.collect(), fault.map(|fault| fault.message.into_owned()))
    }

    #[test]
    fn blocks_end_at_end_line_or_end_of_text() {
        let (blocks, fault) = read("\n//script ik=pay-1\nsend a\n//end x\n//end\n\n//script\r\nlast\n");
        assert_eq!(
            blocks,
            [("pay-1".to_owned(), "send a\n//end x\n".to_owned()), (String::new(), "last\n".to_owned())]
        );
        assert_eq!(fault, None);
    }

    #[test]
    fn a_malformed_header_ends_the_stream() {
        for (text, message) in [
            ("//script\na\n//end\nsend", "invalid header"),
            ("//script\na\n//end\n//scripts", "invalid header"),
            ("//script\na\n//end\n//script x=1", "invalid header, key 'x' not recognized"),
            ("//script\na\n//end\n//script ik=a,ik=b", "invalid header, idempotency key already set"),
        ] {
            let (blocks, fault) = read(text);
            assert_eq!(blocks.len(), 1, "{text}");
            assert_eq!(fault.as_deref(), Some(message), "{text}");
        }
    }
}
