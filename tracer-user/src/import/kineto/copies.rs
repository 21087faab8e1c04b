//! What a copy is, from its name: `Memcpy HtoD (Pageable -> Device)`.

/// What a copy's name says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyWords {
    /// `HtoD`.
    pub copy: Option<String>,
    /// `pageable`.
    pub source: Option<String>,
    /// `device`.
    pub destination: Option<String>,
}

impl CopyWords {
    /// Takes a name apart.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let rest = name.strip_prefix("Memcpy").unwrap_or(name).trim();
        let (copy, kinds) = match rest.split_once('(') {
            Some((copy, kinds)) => (copy.trim(), kinds.trim_end_matches(')')),
            None => (rest, ""),
        };
        let word = |text: &str| {
            (!text.trim().is_empty()).then(|| text.trim().to_ascii_lowercase().replace(' ', "_"))
        };
        let (source, destination) = match kinds.split_once("->") {
            Some((source, destination)) => (word(source), word(destination)),
            None => (None, None),
        };
        Self { copy: (!copy.is_empty()).then(|| copy.to_owned()), source, destination }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies() {
        let of = |name: &str| {
            let words = CopyWords::of(name);
            [words.copy, words.source, words.destination].map(Option::unwrap_or_default)
        };
        assert_eq!(of("Memcpy HtoD (Pageable -> Device)"), ["HtoD", "pageable", "device"]);
        assert_eq!(of("Memcpy DtoD (Device -> Device)"), ["DtoD", "device", "device"]);
        assert_eq!(of("Memcpy PtoP (Device Static -> Managed)"), ["PtoP", "device_static", "managed"]);
        assert_eq!(of("CopyDeviceToHost"), ["CopyDeviceToHost", "", ""]);
        assert_eq!(of(""), ["", "", ""]);
    }
}
