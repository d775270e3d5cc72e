//! JSON, read by one way: what is generic is there once for each way that it is used.

use serde::de::DeserializeOwned;

/// Reads a value from the text of a file.
///
/// # Errors
/// Where it is no JSON, with line and column, or not of this form.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    serde_json::from_value(serde_json::from_slice(text)?)
}
