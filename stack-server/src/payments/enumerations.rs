//! The enumerations of the payments API: closed sets of words.

/// Defines an enumeration of words with their texts and stored numbers.
macro_rules! enumeration {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $number:literal, $word:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum $name { $($variant = $number,)* }

        impl $name {
            /// Every word.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the text of the word.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns the word with this text.
            #[allow(dead_code, reason = "clients do not send words of all sets")]
            pub(crate) fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.name() == text)
            }

            /// Returns the stored number, by which lists are sorted.
            pub(crate) const fn number(self) -> u8 {
                self as u8
            }

            /// Returns the word with this stored number.
            pub(crate) fn of_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.number() == number)
            }
        }
    };
}

enumeration! {
    /// Direction of a payment. Lists sort in this order.
    PaymentType {
        PayIn = 0, "PAY-IN";
        Payout = 1, "PAYOUT";
        Transfer = 2, "TRANSFER";
        Other = 3, "OTHER";
    }
}

enumeration! {
    /// Status of a payment or an adjustment. Lists sort in this order.
    PaymentStatus {
        Succeeded = 0, "SUCCEEDED";
        Cancelled = 1, "CANCELLED";
        Failed = 2, "FAILED";
        Pending = 3, "PENDING";
        Other = 4, "OTHER";
        Expired = 5, "EXPIRED";
        Refunded = 6, "REFUNDED";
        RefundedFailure = 7, "REFUNDED_FAILURE";
        Dispute = 8, "DISPUTE";
        DisputeWon = 9, "DISPUTE_WON";
        DisputeLost = 10, "DISPUTE_LOST";
    }
}

enumeration! {
    /// Scheme of a payment.
    Scheme {
        Unknown = 0, "unknown";
        Other = 1, "other";
        Visa = 2, "visa";
        Mastercard = 3, "mastercard";
        Amex = 4, "amex";
        Diners = 5, "diners";
        Discover = 6, "discover";
        Jcb = 7, "jcb";
        Unionpay = 8, "unionpay";
        SepaDebit = 9, "sepa debit";
        SepaCredit = 10, "sepa credit";
        Sepa = 11, "sepa";
        ApplePay = 12, "apple pay";
        GooglePay = 13, "google pay";
        A2a = 14, "a2a";
        AchDebit = 15, "ach debit";
        Ach = 16, "ach";
        Rtp = 17, "rtp";
        Alipay = 18, "alipay";
        Cup = 19, "cup";
        Doku = 20, "doku";
        Dragonpay = 21, "dragonpay";
        Maestro = 22, "maestro";
        Molpay = 23, "molpay";
    }
}

enumeration! {
    /// Owner of an account: the owner of the installation or a counterparty.
    AccountType {
        Internal = 0, "INTERNAL";
        External = 1, "EXTERNAL";
        Unknown = 2, "UNKNOWN";
    }
}

enumeration! {
    /// Status of a task.
    TaskStatus {
        Stopped = 0, "STOPPED";
        Pending = 1, "PENDING";
        Active = 2, "ACTIVE";
        Terminated = 3, "TERMINATED";
        Failed = 4, "FAILED";
    }
}

enumeration! {
    /// Destination of a transfer initiation: an account of the owner (transfer) or of a counterparty (payout).
    InitiationType {
        Transfer = 0, "TRANSFER";
        Payout = 1, "PAYOUT";
    }
}

enumeration! {
    /// Status of a transfer initiation.
    InitiationStatus {
        WaitingForValidation = 0, "WAITING_FOR_VALIDATION";
        Processing = 1, "PROCESSING";
        Processed = 2, "PROCESSED";
        Failed = 3, "FAILED";
        Rejected = 4, "REJECTED";
        Validated = 5, "VALIDATED";
        AskRetried = 6, "ASK_RETRIED";
        AskReversed = 7, "ASK_REVERSED";
        ReverseProcessing = 8, "REVERSE_PROCESSING";
        ReverseFailed = 9, "REVERSE_FAILED";
        PartiallyReversed = 10, "PARTIALLY_REVERSED";
        Reversed = 11, "REVERSED";
    }
}

enumeration! {
    /// Status of a transfer of stack 1.10.
    TransferStatus {
        Pending = 0, "PENDING";
        Succeeded = 1, "SUCCEEDED";
        Failed = 2, "FAILED";
    }
}

impl Scheme {
    /// Returns the scheme with this text in any case.
    pub(crate) fn parse_any_case(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|scheme| scheme.name().eq_ignore_ascii_case(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_by_text_and_number() {
        for scheme in Scheme::ALL {
            assert_eq!(Scheme::parse_any_case(&scheme.name().to_uppercase()), Some(*scheme));
            assert_eq!(Scheme::of_number(scheme.number()), Some(*scheme));
        }
        for status in PaymentStatus::ALL {
            assert_eq!(PaymentStatus::parse(status.name()), Some(*status));
        }
        assert_eq!((PaymentType::parse("pay-in"), PaymentType::of_number(9)), (None, None));
    }
}
