//! Settings that are one word out of a few.

/// Declares an enum whose variants are the words of a setting, in one list.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )+
            // Words that are read, and that this version has nothing for: none is listed.
            $( ; $( $(#[$absent_meta:meta])* $absent:ident = $absent_word:literal, )+ )?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
            $( $( $(#[$absent_meta])* $absent, )+ )?
        }

        impl $name {
            /// The word that stands for it in files, variables and flags.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Self::$variant => $word, )+
                    $( $( Self::$absent => $absent_word, )+ )?
                }
            }

            /// The one that a word stands for.
            pub fn named(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some(Self::$variant), )+
                    $( $( $absent_word => Some(Self::$absent), )+ )?
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::setting::Setting for $name {
            const SHAPE: $crate::setting::Shape =
                $crate::setting::Shape::Choice(&[$( $word, )+]);

            fn read(
                value: &$crate::value::Value,
            ) -> Result<Self, $crate::setting::Mismatch> {
                match value {
                    $( $crate::value::Value::Text(text) if text == $word => Ok(Self::$variant), )+
                    $( $(
                        $crate::value::Value::Text(text) if text == $absent_word => Ok(Self::$absent),
                    )+ )?
                    other => Err($crate::setting::choice_mismatch(Self::SHAPE, other)),
                }
            }

            fn write(&self) -> $crate::value::Value {
                $crate::value::Value::Text(self.as_str().to_owned())
            }
        }
    };
}

pub(crate) use choice;
