//! Spreadsheets (`.xlsx`).

use std::collections::HashMap;

use super::{
    ConvertError, Parts, TEXT_BYTES_MAX, table,
    xml::{Step, Walk},
};

/// One cell can claim to stand in column 16,384; rows are padded to the widest.
const COLUMNS_MAX: usize = 256;

pub(super) fn markdown(parts: &mut Parts) -> Result<String, ConvertError> {
    let workbook = parts.text("xl/workbook.xml")?;
    let relations = relations(&parts.text("xl/_rels/workbook.xml.rels")?);
    // A workbook without a single text has no such part.
    let strings = match parts.text("xl/sharedStrings.xml") {
        Ok(xml) => shared_strings(&xml),
        Err(ConvertError::PartMissing { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut out = String::new();
    for (name, relation) in sheets(&workbook) {
        let Some(target) = relations.get(&relation) else {
            continue;
        };
        let part = match target.strip_prefix('/') {
            Some(absolute) => absolute.to_owned(),
            None => format!("xl/{target}"),
        };
        let rows = rows(&parts.text(&part)?, &strings);
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(&format!("## {name}\n{}", table(&rows)));
        if out.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    Ok(out)
}

/// Names of the sheets with what their relation is called.
fn sheets(workbook: &str) -> Vec<(String, String)> {
    Walk::over(workbook)
        .filter_map(|step| match step {
            Step::Open(tag) if tag.name == "sheet" => Some((
                tag.attribute("name")?.into_owned(),
                tag.attribute("id")?.into_owned(),
            )),
            _ => None,
        })
        .collect()
}

fn relations(xml: &str) -> HashMap<String, String> {
    Walk::over(xml)
        .filter_map(|step| match step {
            Step::Open(tag) if tag.name == "Relationship" => Some((
                tag.attribute("Id")?.into_owned(),
                tag.attribute("Target")?.into_owned(),
            )),
            _ => None,
        })
        .collect()
}

fn shared_strings(xml: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let (mut text, mut in_text) = (String::new(), false);
    for step in Walk::over(xml) {
        match step {
            Step::Open(tag) if tag.name == "t" => in_text = true,
            Step::Close("t") => in_text = false,
            Step::Close("si") => strings.push(std::mem::take(&mut text)),
            Step::Text(part) if in_text => text.push_str(&part),
            _ => {}
        }
    }
    strings
}

fn rows(xml: &str, strings: &[String]) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let (mut column, mut is_shared, mut in_value) = (0, false, false);
    let (mut value, mut bytes) = (String::new(), 0);
    for step in Walk::over(xml) {
        match step {
            Step::Open(tag) => match tag.name {
                "row" => rows.push(Vec::new()),
                "c" => {
                    let next = rows.last().map_or(0, Vec::len);
                    column = tag
                        .attribute("r")
                        .and_then(|at| column_of(&at))
                        .unwrap_or(next);
                    is_shared = tag.attribute("t").as_deref() == Some("s");
                }
                "v" | "t" => in_value = true,
                _ => {}
            },
            Step::Close("v" | "t") => in_value = false,
            Step::Close("c") => {
                let raw = std::mem::take(&mut value);
                let cell = match raw.parse::<usize>() {
                    Ok(index) if is_shared => strings.get(index).cloned().unwrap_or_default(),
                    _ => raw,
                };
                bytes += cell.len() + 3;
                if let Some(row) = rows.last_mut()
                    && column < COLUMNS_MAX
                {
                    row.resize(row.len().max(column + 1), String::new());
                    row[column] = cell;
                }
            }
            Step::Close("row") if bytes > TEXT_BYTES_MAX => break,
            Step::Close(_) => {}
            Step::Text(text) if in_value => value.push_str(&text),
            Step::Text(_) => {}
        }
    }
    rows
}

/// The column of a cell such as `AB12`, counted from 0.
fn column_of(reference: &str) -> Option<usize> {
    let mut column: usize = 0;
    for letter in reference
        .bytes()
        .take_while(u8::is_ascii_alphabetic)
        .take(4)
    {
        column = column * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1;
    }
    column.checked_sub(1)
}
