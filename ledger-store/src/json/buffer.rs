//! Splits a text of JSON logs, which arrives in parts, into the texts of single logs.

use super::log_reader::{LogFault, LogTextError};

/// Maximum length of the text of one log in bytes. Bounds memory. An export repeats the accounts of a transaction four
/// times in its volumes, so a log is several times as long as the request that wrote it.
pub const LOG_BYTES_MAX: usize = 32 * 1_024 * 1_024;

/// Splits a text that arrives in parts into logs. White space, or nothing, may separate the logs.
///
/// ```
/// let mut buffer = ledger_store::json::LogBuffer::default();
/// buffer.push(br#"{"id":1} {"id"#);
/// assert_eq!(buffer.next_log()?, Some(r#"{"id":1}"#));
/// assert_eq!(buffer.next_log()?, None);
/// buffer.push(br#"":2}"#);
/// assert_eq!(buffer.next_log()?, Some(r#"{"id":2}"#));
/// buffer.finish()?;
/// # Ok::<(), ledger_store::json::LogTextError>(())
/// ```
///
/// It holds only the text that is not read yet, and refuses a log that is too long:
///
/// ```
/// use ledger_store::json::{LOG_BYTES_MAX, LogBuffer};
/// let mut buffer = LogBuffer::default();
/// buffer.push(br#"{"id":1} {"id"#);
/// let _ = buffer.next_log()?;
/// assert_eq!(buffer.unread_bytes(), r#" {"id"#.len());
/// assert!(buffer.memory_bytes() < LOG_BYTES_MAX);
/// # Ok::<(), ledger_store::json::LogTextError>(())
/// ```
#[derive(Debug, Default)]
pub struct LogBuffer {
    bytes: Vec<u8>,
    /// Start of the current log, or of the white space before it. Earlier bytes were returned.
    start: usize,
    /// All bytes before this one were scanned. A new part continues here, so each byte is scanned once.
    scanned: usize,
    /// Number of open brackets at `scanned`.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl LogBuffer {
    /// Appends a part of the text.
    pub fn push(&mut self, part: &[u8]) {
        self.bytes.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.bytes.extend_from_slice(part);
    }

    /// Returns the number of received bytes that are not part of a returned log.
    pub fn unread_bytes(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Returns the number of bytes of memory that the buffer holds.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the text of the next log, or `None` if the rest of it has not arrived.
    ///
    /// # Errors
    ///
    /// [`LogTextError`] for a text that does not begin like a log, or is too long for one.
    pub fn next_log(&mut self) -> Result<Option<&str>, LogTextError> {
        if self.depth == 0 {
            let rest = &self.bytes[self.scanned..];
            self.scanned += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.start = self.scanned;
            match self.bytes.get(self.start) {
                None => return Ok(None),
                Some(b'{') => {}
                // The text is not a log. The caller's parser will report the defect.
                Some(_) => return self.rest_as_log(),
            }
        }
        let Some(end) = self.find_end() else {
            if self.unread_bytes() > LOG_BYTES_MAX {
                return Err(LogFault::TooLong.into());
            }
            return Ok(None);
        };
        let log = std::mem::replace(&mut self.start, end)..end;
        text_of(&self.bytes[log]).map(Some)
    }

    /// Checks that the text does not end in the middle of a log.
    ///
    /// # Errors
    ///
    /// [`LogFault::CutOff`] if it does.
    pub fn finish(&self) -> Result<(), LogTextError> {
        let is_blank = self.bytes[self.start..].iter().all(u8::is_ascii_whitespace);
        if is_blank { Ok(()) } else { Err(LogFault::CutOff.into()) }
    }

    /// Finds the offset after the log that begins at `start`. Counts brackets outside of strings, and leaves everything
    /// else to the parser.
    fn find_end(&mut self) -> Option<usize> {
        for (at, byte) in self.bytes.iter().enumerate().skip(self.scanned) {
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.scanned = at + 1;
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        self.scanned = self.bytes.len();
        None
    }

    /// Returns all remaining bytes as one log, for a text that does not begin with an object.
    fn rest_as_log(&mut self) -> Result<Option<&str>, LogTextError> {
        let from = std::mem::replace(&mut self.start, self.bytes.len());
        self.scanned = self.bytes.len();
        text_of(&self.bytes[from..]).map(Some)
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, LogTextError> {
    std::str::from_utf8(bytes).map_err(|_| LogFault::NotText.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the logs in a text that arrives in two parts.
    fn logs(first: &str, second: &str) -> Result<Vec<String>, LogTextError> {
        let mut buffer = LogBuffer::default();
        let mut logs = Vec::new();
        for part in [first, second] {
            buffer.push(part.as_bytes());
            while let Some(log) = buffer.next_log()? {
                logs.push(log.to_owned());
            }
        }
        buffer.finish().map(|()| logs)
    }

    #[test]
    fn finds_logs_in_text_cut_at_any_byte() {
        let one = r#"{"a":"}\"{[","b":[{}],"c":-1.5e+7}"#;
        let two = r#"{"d":"\\"}"#;
        let text = format!("{one}{two}\n \t{one}\r\n");
        for cut in 0..=text.len() {
            let (first, second) = text.split_at(cut);
            assert_eq!(logs(first, second), Ok(vec![one.into(), two.into(), one.into()]), "cut at {cut}");
        }
    }

    #[test]
    fn tells_text_that_breaks_off() {
        assert_eq!(logs("", " \n"), Ok(vec![]));
        for text in ["{", r#"{"a":"}"#, r#"{"a":[{}]"#] {
            assert_eq!(logs(text, ""), Err(LogFault::CutOff.into()), "{text}");
        }
        assert_eq!(logs("[]", ""), Ok(vec!["[]".to_owned()]));
        let mut endless = LogBuffer::default();
        endless.push(b"{\"a\":\"");
        endless.push(&vec![b'x'; LOG_BYTES_MAX]);
        assert_eq!(endless.next_log(), Err(LogFault::TooLong.into()));
        let mut binary = LogBuffer::default();
        binary.push(b"{\"a\":\"\xff\"}");
        assert_eq!(binary.next_log(), Err(LogFault::NotText.into()));
    }
}
