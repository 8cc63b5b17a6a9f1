//! Parameters of a protocol endpoint, from a form or a query, and the credentials of the client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap};

use crate::api::context::Context;
use crate::auth::grants::caller::Credentials;
use crate::auth::grants::error::{ErrorCode, OAuthError};
use crate::http::request::{Query, decode_form};

/// The parameters of a request. Parameters of the body precede those of the address. `Debug` hides all of them.
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    /// Reads the parameters of a request.
    ///
    /// # Errors
    ///
    /// `invalid_request` if the body is not text, or if a parameter is repeated.
    pub(crate) fn of(context: &Context<'_>) -> Result<Self, OAuthError> {
        let body = std::str::from_utf8(&context.body)
            .map_err(|_| OAuthError::new(ErrorCode::InvalidRequest, "the body is not UTF-8"))?;
        let mut form = Self::parse(body)?;
        let query: Vec<(String, String)> = own(&context.query);
        check_once(&query)?;
        for (name, value) in query {
            if form.get(&name).is_none() {
                form.0.push((name, value));
            }
        }
        Ok(form)
    }

    /// Reads the parameters of a body.
    ///
    /// # Errors
    ///
    /// `invalid_request` if a parameter is repeated, or is not valid escaped text.
    pub(crate) fn parse(body: &str) -> Result<Self, OAuthError> {
        if body.split(['&', '=']).any(|part| decode_form(part).is_none()) {
            return Err(OAuthError::new(ErrorCode::InvalidRequest, "a parameter is no escaped text"));
        }
        let pairs = own(&Query::parse(body));
        check_once(&pairs)?;
        Ok(Self(pairs))
    }

    /// Returns the value of a parameter. An empty value counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str());
        found.filter(|value| !value.is_empty())
    }

    /// Returns a required parameter.
    ///
    /// # Errors
    ///
    /// `invalid_request` if it is missing.
    pub(crate) fn need(&self, name: &'static str) -> Result<&str, OAuthError> {
        self.get(name).ok_or_else(|| OAuthError::new(ErrorCode::InvalidRequest, format!("{name} missing")))
    }

    /// Returns the credentials of the client. The header takes precedence over the form.
    ///
    /// # Errors
    ///
    /// `invalid_request` for a malformed header.
    pub(crate) fn credentials(&self, headers: &HeaderMap) -> Result<Option<Credentials>, OAuthError> {
        if let Some(basic) = basic(headers)? {
            return Ok(Some(basic));
        }
        let secret = self.get("client_secret").map(str::to_owned);
        Ok(self.get("client_id").map(|id| Credentials { id: id.to_owned(), secret }))
    }
}

fn own(query: &Query<'_>) -> Vec<(String, String)> {
    query.pairs().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn check_once(pairs: &[(String, String)]) -> Result<(), OAuthError> {
    let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        // Do not repeat the name: the client chose it, and it may be any text.
        Some(_) => Err(OAuthError::new(ErrorCode::InvalidRequest, "a parameter is there twice")),
        None => Ok(()),
    }
}

/// Returns id and secret of a `Basic` header. Both are escaped as in a form (RFC 6749, section 2.3.1).
///
/// # Errors
///
/// `invalid_request` if the header is malformed or repeated.
pub(crate) fn basic(headers: &HeaderMap) -> Result<Option<Credentials>, OAuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, more) = (values.next(), values.next());
    let Some(value) = value else { return Ok(None) };
    let malformed = || OAuthError::new(ErrorCode::InvalidRequest, "the authorization header is malformed");
    if more.is_some() {
        return Err(malformed());
    }
    let text = value.to_str().map_err(|_| malformed())?;
    let Some((scheme, encoded)) = text.split_once(' ') else { return Err(malformed()) };
    if !scheme.eq_ignore_ascii_case("basic") {
        return Ok(None);
    }
    read_basic(encoded.trim()).ok_or_else(malformed).map(Some)
}

fn read_basic(encoded: &str) -> Option<Credentials> {
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    let [id, secret] = [id, secret].map(|part| decode_form(part).map(std::borrow::Cow::into_owned));
    Some(Credentials { id: id?, secret: Some(secret?) })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn read(value: &str) -> Result<Option<(String, String)>, ErrorCode> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(value).expect("a header"));
        let read = basic(&headers).map_err(|error| error.code)?;
        Ok(read.map(|found| (found.id, found.secret.unwrap_or_default())))
    }

    #[test]
    fn credentials_are_decoded_twice() {
        for (text, id, secret) in [
            ("global:global", "global", "global"),
            ("a%3Ab:c+d%2B", "a:b", "c d+"),
            ("id:", "id", ""),
            ("id:a:b", "id", "a:b"),
        ] {
            let read = read(&format!("Basic {}", STANDARD.encode(text)));
            assert_eq!(read, Ok(Some((id.to_owned(), secret.to_owned()))), "{text}");
        }
        assert_eq!(read("Bearer abc"), Ok(None));
        for value in [
            "Basic",
            "Basic !",
            &format!("Basic {}", STANDARD.encode("no colon")),
            "Basic /w==",
            "Basic YTolZg==",
        ] {
            assert_eq!(read(value), Err(ErrorCode::InvalidRequest), "{value}");
        }
    }

    #[test]
    fn a_parameter_may_be_there_once() {
        let form = Form::parse("a=1&b=&c=x+y%20z").expect("a form");
        assert_eq!((form.get("a"), form.get("b"), form.get("c")), (Some("1"), None, Some("x y z")));
        assert_eq!(form.need("b").map_err(|error| error.code), Err(ErrorCode::InvalidRequest));
        assert!(Form::parse("a=1&a=1").is_err());
        for malformed in ["scope=%zz", "scope=%ff", "%c3=1", "a=1&b=%"] {
            assert!(Form::parse(malformed).is_err(), "{malformed}");
        }
    }
}
