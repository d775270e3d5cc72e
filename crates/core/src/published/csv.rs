//! Reads tables of comma-separated values: a head, then rows; a field may stand in quotes.

/// A row of a table with that head.
pub(super) struct Fields {
    head: Vec<String>,
    fields: Vec<String>,
}

impl Fields {
    /// The field of that name; empty without one.
    pub(super) fn get(&self, name: &str) -> &str {
        let at = self.head.iter().position(|head| head == name);
        at.and_then(|at| self.fields.get(at)).map_or("", String::as_str)
    }

    /// The field of that name, if it is not empty.
    pub(super) fn some(&self, name: &str) -> Option<String> {
        Some(self.get(name).to_owned()).filter(|text| !text.is_empty())
    }
}

/// The rows below the head.
pub(super) fn rows(table: &str) -> impl Iterator<Item = Fields> {
    let mut lines = table.lines();
    let head = fields(lines.next().unwrap_or_default());
    lines.map(move |line| Fields { head: head.clone(), fields: fields(line) })
}

/// Commas between quotes are text, and two quotes there are one.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' if quoted && signs.peek() == Some(&'"') => {
                signs.next();
                fields.last_mut().into_iter().for_each(|field| field.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            sign => fields.last_mut().into_iter().for_each(|field| field.push(sign)),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_commas() {
        assert_eq!(fields(r#"a,"b, c",,"say ""d""",e"#), ["a", "b, c", "", r#"say "d""#, "e"]);
        let found: Vec<_> = rows("x,y\n1,\n3,4\n").collect();
        assert_eq!((found[1].get("y"), found[0].some("y"), found[0].get("z")), ("4", None, ""));
    }
}
