//! Statements as MySQL takes them. The shared texts name their parameters `$1`, `$2`, …; here each
//! use becomes a `?`, bound in the order of use. MySQL has no arrays, so a parameter with many
//! values stands in a group, which is written once for each row of values:
//!
//! - `<<…>>`: separated by commas, as in `values <<($1, $2)>>`.
//! - `<<all …>>`: separated by `union all`, as in `<<all (select a from t where b = $1 limit $2)>>`.
//! - `<<in …>>`: separated by commas, as in `where (run, place) in (<<in ($1, $2)>>)`.
//! - `<<or …>>`: separated by `or`, as in `where (<<or (run = $1 and number > $2)>>)`.
//!
//! The first two are written exactly as many times as there are rows; rows go in several calls
//! whose sizes are powers of two. The others, which do not mind a row twice, are filled up to a
//! power of two with the last row. So a connection prepares a statement a few times only, however
//! many rows there are. They have two rows at least: MariaDB scans the table for a list of one.
//!
//! A parameter with one value may stand anywhere. `$0`, in a group, is the number of the row,
//! beginning with 1. More rows than one call takes are asked for in several calls, and the answers
//! follow each other: a statement with a group must not rely on seeing all rows at once. Without
//! any rows there is no call and no answer. Lines of comment are left out.

use crate::error::{Kind, Trouble};
use crate::session::Param;
use mysql_async::Value;

/// Most rows of values in one call.
pub(crate) const ROWS_MAX: usize = 512;
/// Rows beyond this many bytes go with the next call, so that a batch of large payloads stays below
/// the server's `max_allowed_packet`.
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// A statement, taken apart.
#[derive(Debug)]
pub(crate) struct Template {
    parts: Vec<Part>,
    /// How often each parameter is used; the first is at 0.
    uses: Vec<usize>,
    /// Whether rows may be written twice, if there is a group.
    repeats: bool,
}

#[derive(Debug)]
enum Part {
    Piece(Piece),
    Group { separator: &'static str, pieces: Vec<Piece> },
}

#[derive(Debug)]
enum Piece {
    Text(String),
    Param(usize),
    /// The number of the row.
    Row,
}

/// The kinds of groups: how they begin, what separates rows, whether rows may be written twice.
const GROUPS: [(&str, &str, bool); 4] = [
    ("all ", "\nunion all\n", false),
    ("in ", ", ", true),
    ("or ", " or ", true),
    ("", ", ", false),
];

/// The rows of one call: those from `start` to `end`, written as `size`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    start: usize,
    end: usize,
    pub(crate) size: usize,
}

impl Template {
    /// Takes a statement apart; says what is wrong with it otherwise.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let text = without_comments(text);
        let (mut parts, mut kinds) = (Vec::new(), Vec::new());
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("<<") {
            let Some((group, after)) = after.split_once(">>") else {
                return Err("a group << is not closed by >>".into());
            };
            parts.extend(pieces(before)?.into_iter().map(Part::Piece));
            for (word, separator, repeats) in GROUPS {
                if let Some(group) = group.strip_prefix(word) {
                    parts.push(Part::Group { separator, pieces: pieces(group)? });
                    kinds.push(repeats);
                    break;
                }
            }
            rest = after;
        }
        parts.extend(pieces(rest)?.into_iter().map(Part::Piece));
        let repeats = kinds.first().copied().unwrap_or(false);
        if kinds.iter().any(|kind| *kind != repeats) {
            return Err("groups of which some may have a row twice and others may not".into());
        }
        let uses = uses(&parts)?;
        Ok(Template { parts, uses, repeats })
    }

    /// The text for so many rows.
    pub(crate) fn text(&self, size: usize) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Piece(piece) => write(&mut text, piece),
                Part::Group { separator, pieces } => {
                    for row in 0..size {
                        if row > 0 {
                            text.push_str(separator);
                        }
                        pieces.iter().for_each(|piece| write(&mut text, piece));
                    }
                }
            }
        }
        text
    }

    /// The calls that parameters need.
    pub(crate) fn chunks(&self, params: &[Param]) -> Result<Vec<Chunk>, Trouble> {
        if params.len() != self.uses.len() {
            let (wanted, given) = (self.uses.len(), params.len());
            return Err(wrong(format!("{given} parameters were given, {wanted} are wanted")));
        }
        let mut rows = None;
        for count in params.iter().filter_map(Param::rows) {
            if rows.is_some_and(|rows| rows != count) {
                return Err(wrong("parameters have different numbers of values".into()));
            }
            rows = Some(count);
        }
        let Some(rows) = rows else {
            let size = if self.repeats { 2 } else { 1 };
            return Ok(vec![Chunk { start: 0, end: 1, size }]);
        };
        let (mut chunks, mut start) = (Vec::new(), 0);
        while start < rows {
            let chunk = self.chunk(params, start, rows);
            start = chunk.end;
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    fn chunk(&self, params: &[Param], start: usize, rows: usize) -> Chunk {
        let (mut end, mut bytes) = (start, 0);
        while end < rows && end - start < ROWS_MAX {
            bytes += params.iter().map(|param| param.bytes(end)).sum::<usize>();
            if end > start && bytes > BYTES_MAX {
                break;
            }
            end += 1;
        }
        let count = end - start;
        match self.repeats {
            true => Chunk { start, end, size: count.next_power_of_two().max(2) },
            false => {
                let size = 1 << count.ilog2();
                Chunk { start, end: start + size, size }
            }
        }
    }

    /// The values of a call in the order of use. They are taken out of the parameters where they are
    /// not needed again.
    pub(crate) fn values(&self, params: &mut [Param], chunk: Chunk) -> Result<Vec<Value>, Trouble> {
        let mut values = Vec::new();
        for part in &self.parts {
            match part {
                Part::Piece(Piece::Text(_)) => {}
                Part::Piece(Piece::Row) => return Err(wrong("$0 is in no group".into())),
                Part::Piece(Piece::Param(at)) => match params[*at].rows() {
                    None => values.push(params[*at].value(0)),
                    Some(_) => {
                        let at = at + 1;
                        return Err(wrong(format!("${at} has many values and is in no group")));
                    }
                },
                Part::Group { pieces, .. } => self.group(pieces, params, chunk, &mut values),
            }
        }
        Ok(values)
    }

    fn group(&self, pieces: &[Piece], params: &mut [Param], chunk: Chunk, out: &mut Vec<Value>) {
        for row in chunk.start..chunk.start + chunk.size {
            let last = row + 1 >= chunk.end;
            let row = row.min(chunk.end - 1);
            for piece in pieces {
                match piece {
                    Piece::Text(_) => {}
                    Piece::Row => out.push(Value::UInt(row as u64 + 1)),
                    Piece::Param(at) if self.uses[*at] == 1 && !(self.repeats && last) => {
                        out.push(params[*at].take(row));
                    }
                    Piece::Param(at) => out.push(params[*at].value(row)),
                }
            }
        }
    }
}

fn wrong(problem: String) -> Trouble {
    Trouble::server(Kind::Refused, problem)
}

fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("--"));
    lines.collect::<Vec<_>>().join("\n").trim().trim_end_matches(';').to_owned()
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    if text.contains('?') {
        return Err("a question mark: parameters are written $1, $2, …".into());
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match after[..digits].parse::<usize>() {
            Ok(number @ 1..) => {
                pieces.push(Piece::Text(before.to_owned()));
                pieces.push(Piece::Param(number - 1));
            }
            Ok(0) => pieces.extend([Piece::Text(before.to_owned()), Piece::Row]),
            // A path into JSON begins with a dollar sign too.
            Err(_) => pieces.push(Piece::Text(format!("{before}${}", &after[..digits]))),
        }
        rest = &after[digits..];
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

fn uses(parts: &[Part]) -> Result<Vec<usize>, String> {
    let mut uses = Vec::new();
    let mut count = |piece: &Piece| {
        if let Piece::Param(at) = piece {
            if uses.len() <= *at {
                uses.resize(at + 1, 0);
            }
            uses[*at] += 1;
        }
    };
    for part in parts {
        match part {
            Part::Piece(piece) => count(piece),
            Part::Group { pieces, .. } => pieces.iter().for_each(&mut count),
        }
    }
    match uses.iter().position(|uses| *uses == 0) {
        Some(at) => Err(format!("${} is not used, and a later parameter is", at + 1)),
        None => Ok(uses),
    }
}

fn write(text: &mut String, piece: &Piece) {
    match piece {
        Piece::Text(piece) => text.push_str(piece),
        Piece::Param(_) | Piece::Row => text.push('?'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::parse(text).expect("a statement")
    }

    fn ints(values: std::ops::Range<i64>) -> Param {
        Param::Ints(values.map(Some).collect())
    }

    /// The texts and values of all calls.
    fn calls(text: &str, mut params: Vec<Param>) -> Vec<(String, Vec<Value>)> {
        let template = template(text);
        let chunks = template.chunks(&params).expect("parameters that fit");
        let values = |chunk| template.values(&mut params, chunk).expect("parameters in groups");
        let values: Vec<_> = chunks.iter().copied().map(values).collect();
        chunks.iter().map(|chunk| template.text(chunk.size)).zip(values).collect()
    }

    #[test]
    fn a_parameter_is_bound_wherever_it_is_used() {
        let text = "-- What $9 was.\nselect a from t where a = $2 and (b = $1 or c = $2);\n";
        let params = vec![Param::Int(Some(1)), Param::Text(Some("x".into()))];
        let x = Value::Bytes(b"x".to_vec());
        let wanted = "select a from t where a = ? and (b = ? or c = ?)".to_owned();
        assert_eq!(calls(text, params), [(wanted, vec![x.clone(), Value::Int(1), x])]);
    }

    #[test]
    fn paths_into_json_are_left_alone() {
        let text = "select json_value(a, '$.b'), json_value(a, '$[0]') from t where c = $1";
        let wanted = "select json_value(a, '$.b'), json_value(a, '$[0]') from t where c = ?";
        assert_eq!(template(text).text(1), wanted);
    }

    #[test]
    fn rows_of_values_are_written_in_powers_of_two() {
        let text = "insert into t (a, b) values <<($1, $2)>> on duplicate key update b = $2";
        assert!(Template::parse(text).is_ok());
        let text = "insert into t (a, b) values <<($1, $2)>>";
        let calls = calls(text, vec![ints(0..7), Param::Int(Some(9))]);
        let sizes: Vec<_> = calls.iter().map(|(_, values)| values.len() / 2).collect();
        assert_eq!(sizes, [4, 2, 1]);
        assert_eq!(calls[2].0, "insert into t (a, b) values (?, ?)");
        let bound: Vec<_> = calls.iter().flat_map(|(_, values)| values.iter().step_by(2)).collect();
        assert_eq!(bound, (0..7).map(Value::Int).collect::<Vec<_>>().iter().collect::<Vec<_>>());
        assert!(calls.iter().all(|(_, values)| values[1] == Value::Int(9)));
    }

    #[test]
    fn a_list_to_look_in_is_filled_up_with_its_last_row() {
        let text = "select a from t where (a, b) in (<<in ($1, $2)>>) and c = $3";
        let texts = Param::Texts(vec![Some("x".into()), None, Some("z".into())]);
        let calls = calls(text, vec![ints(1..4), texts, Param::Int(None)]);
        let (text, values) = &calls[0];
        assert_eq!(
            text,
            "select a from t where (a, b) in ((?, ?), (?, ?), (?, ?), (?, ?)) and c = ?"
        );
        let z = Value::Bytes(b"z".to_vec());
        assert_eq!(
            values[2..],
            [Value::Int(2), Value::NULL, Value::Int(3), z.clone(), Value::Int(3), z, Value::NULL]
        );
    }

    #[test]
    fn many_rows_are_several_calls_and_no_rows_are_none() {
        let text = "delete from t where a in (<<in $1>>)";
        let sizes = |count| -> Vec<usize> {
            let calls = calls(text, vec![ints(0..count)]);
            calls.iter().map(|(_, values)| values.len()).collect()
        };
        assert_eq!(sizes(1100), [512, 512, 128]);
        assert_eq!(sizes(1), [2], "a list of one is none to MariaDB");
        assert!(sizes(0).is_empty());
    }

    #[test]
    fn rows_have_numbers_across_calls() {
        let text = "<<all (select $0 as at, a from t where b = $1 limit 1)>>";
        let calls = calls(text, vec![ints(7..10)]);
        assert_eq!(
            calls[0].0,
            "(select ? as at, a from t where b = ? limit 1)\nunion all\n\
             (select ? as at, a from t where b = ? limit 1)"
        );
        let bound = |call: usize| calls[call].1.iter().step_by(2).cloned().collect::<Vec<_>>();
        assert_eq!(
            (bound(0), bound(1)),
            (vec![Value::UInt(1), Value::UInt(2)], vec![Value::UInt(3)])
        );
    }

    #[test]
    fn large_values_are_spread_over_calls() {
        let text = "insert into t (a) values <<($1)>>";
        let large = || Some("x".repeat(3 * 1024 * 1024));
        let calls = calls(text, vec![Param::Texts(vec![large(), large(), None, None])]);
        let sizes: Vec<_> = calls.iter().map(|(_, values)| values.len()).collect();
        assert_eq!(sizes, [1, 2, 1]);
    }

    #[test]
    fn what_cannot_be_bound_is_refused() {
        for text in ["select ?", "in (<<$1", "values <<($1)>> or a in (<<in $1>>)", "select $2"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        let text = "select a from t where a in (<<in $1>>) and b = $2";
        let chunks = |params: Vec<Param>| template(text).chunks(&params);
        assert!(chunks(vec![ints(0..2)]).is_err(), "too few");
        assert!(chunks(vec![ints(0..2), ints(0..3)]).is_err(), "different numbers");
        let mut outside = vec![ints(0..2), ints(0..2)];
        let chunk = chunks(outside.clone()).expect("equal numbers")[0];
        assert!(template(text).values(&mut outside, chunk).is_err(), "outside of a group");
    }
}
