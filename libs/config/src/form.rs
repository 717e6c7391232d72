//! What a text has to look like, in the words of the documentation and in code.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono_tz::Tz;
use ipnet::IpNet;
use tracing_subscriber::EnvFilter;

use crate::{KeyLogin, LogFormat, Secret, urls};

pub(crate) struct Form<T> {
    pub(crate) words: &'static str,
    pub(crate) parse: fn(&str) -> Option<T>,
    /// Whether no message may quote a text of this form.
    pub(crate) is_secret: bool,
}

impl<T> Form<T> {
    const fn plain(words: &'static str, parse: fn(&str) -> Option<T>) -> Self {
        Self {
            words,
            parse,
            is_secret: false,
        }
    }
}

impl Form<Secret> {
    const fn secret(words: &'static str, parse: fn(&str) -> Option<Secret>) -> Self {
        Self {
            words,
            parse,
            is_secret: true,
        }
    }
}

fn secret_if(valid: bool, text: &str) -> Option<Secret> {
    valid.then(|| Secret::new(text))
}

pub(crate) const ADDRESS: Form<SocketAddr> =
    Form::plain("an address and port such as 127.0.0.1:8080", |text| {
        text.parse().ok()
    });
pub(crate) const TIME_ZONE: Form<Tz> =
    Form::plain("a time zone of the IANA database such as Europe/Riga", |name| {
        name.parse().ok()
    });
/// Browsers keep the cookies of the console, and send what is secret, over nothing else.
const SAFE_URL: &str = "an https:// URL, or an http:// URL of this machine";

pub(crate) const HTTP_URL: Form<String> = Form::plain("an http:// or https:// URL", http_url);
/// One whose user and password may be those of an installation.
pub(crate) const SECRET_HTTP_URL: Form<Secret> =
    Form::secret(HTTP_URL.words, |text| http_url(text).map(Secret::new));
/// The address of a page, which is linked with a fragment behind it.
pub(crate) const PAGE_URL: Form<String> =
    Form::plain("an http:// or https:// URL without a fragment", page_url);
pub(crate) const ISSUER: Form<String> = Form::plain(SAFE_URL, issuer);
pub(crate) const PUBLIC_URL: Form<String> = Form::plain(SAFE_URL, |text| {
    issuer(text).map(|url| url.trim_end_matches('/').to_owned())
});
/// What stands for the id of a trace in the address of one.
pub(crate) const TRACE: &str = "{trace}";
pub(crate) const TRACE_URL: Form<String> = Form::plain(
    "an http:// or https:// URL with {trace} where the id of a trace stands",
    trace_url,
);
pub(crate) const CLIENT_ID: Form<String> = Form::plain("an identifier", word);
pub(crate) const CLIENT_SECRET: Form<Secret> = Form::secret("a text that is not empty", |text| {
    secret_if(!text.trim().is_empty(), text)
});
pub(crate) const CLAIM: Form<String> = Form::plain("the name of a claim, or a path with dots", word);
pub(crate) const CLAIM_VALUES: Form<String> = Form::plain(
    "values of the claim without control characters, as a list or with commas between them",
    |text| (!text.trim().is_empty() && !text.contains(char::is_control)).then(|| text.to_owned()),
);
pub(crate) const KEY_LOGIN: Form<KeyLogin> = Form::plain("always, emergency or never", |name| match name {
    "always" => Some(KeyLogin::Always),
    "emergency" => Some(KeyLogin::Emergency),
    "never" => Some(KeyLogin::Never),
    _ => None,
});
pub(crate) const ORIGINS: Form<String> = Form::plain(
    "origins such as https://panel.example, as a list or with commas between them",
    origin,
);
pub(crate) const BRAND_NAME: Form<String> = Form::plain("a text of 1 to 60 characters", |text| {
    let text = text.trim();
    let fits = (1..=60).contains(&text.chars().count()) && !text.contains(char::is_control);
    fits.then(|| text.to_owned())
});
pub(crate) const ACCENT: Form<String> = Form::plain(
    "a colour such as #0b57a4, with a contrast of at least 4.5 to white",
    |text| colour(text, |luminance| 1.05 / (luminance + 0.05)),
);
pub(crate) const ACCENT_DARK: Form<String> = Form::plain(
    "a colour such as #8ab8ff, with a contrast of at least 4.5 to #171d24",
    |text| colour(text, |luminance| (luminance + 0.05) / 0.062),
);
pub(crate) const LOGO: Form<PathBuf> =
    Form::plain("an absolute path of a file that ends in .svg or .png", |text| {
        let path = absolute_folder(text)?;
        let extension = path.extension()?.to_str()?;
        matches!(extension, "svg" | "png").then_some(path.clone())
    });
pub(crate) const THEME: Form<String> = Form::plain("light or dark", |text| {
    matches!(text, "light" | "dark").then(|| text.to_owned())
});
pub(crate) const FOLDER: Form<PathBuf> = Form::plain("an absolute path of a folder", absolute_folder);
pub(crate) const MAILBOX: Form<String> = Form::plain("an e-mail address, with a name or without", mailbox);
pub(crate) const NETWORKS: Form<IpNet> = Form::plain(
    "networks such as 192.0.2.0/24, as a list or with commas between them",
    network,
);
pub(crate) const PORTS: Form<RangeInclusive<u16>> = Form::plain(
    "ports or ranges of them such as 1024-65535, as a list of texts or with commas between them",
    ports,
);
pub(crate) const QUEUE_PREFIX: Form<String> = Form::plain(
    "up to 64 letters, digits, dots, hyphens and underscores",
    |prefix| {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        (prefix.len() <= 64 && prefix.bytes().all(letters)).then(|| prefix.to_owned())
    },
);
pub(crate) const LOG_FORMAT: Form<LogFormat> = Form::plain("human or json", |name| match name {
    "human" => Some(LogFormat::Human),
    "json" => Some(LogFormat::Json),
    _ => None,
});
pub(crate) const LOG_FILTER: Form<String> =
    Form::plain("directives such as info or info,dispatcher=debug", |directives| {
        let valid = EnvFilter::builder().parse(directives).is_ok();
        valid.then(|| directives.to_owned())
    });
pub(crate) const POSTGRES_URL: Form<Secret> = Form::secret(
    "a postgres:// URL with one host, or several separated by commas",
    |url| {
        secret_if(
            url.starts_with("postgres://") || url.starts_with("postgresql://"),
            url,
        )
    },
);
pub(crate) const AMQP_URLS: Form<Secret> = Form::secret(
    "an amqp:// or amqps:// URL, or several of them separated by commas, one for each node of a cluster",
    |urls| secret_if(urls::are_amqp(urls), urls),
);
pub(crate) const SMTP_URL: Form<Secret> = Form::secret("an smtp:// or smtps:// URL", |url| {
    secret_if(is_smtp_url(url), url)
});
pub(crate) const SEALING_KEY: Form<Secret> = Form::secret("base64 of 32 bytes", sealing_key_text);
pub(crate) const SEALING_KEYS: Form<Secret> = Form::secret(
    "base64 of 32 bytes each, as a list or with commas between them",
    sealing_key_text,
);

pub(crate) const FERNET_KEYS: Form<Secret> = Form::secret(
    "base64url of 32 bytes each, as a list or with commas between them",
    |text| secret_if(fernet_key(text).is_some(), text),
);
pub(crate) const BEARER: Form<Secret> = Form::secret("the value of a header", |text| {
    secret_if(
        !text.is_empty() && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
        text,
    )
});

/// Reads a key of Fernet, which is written with padding by some and without by others.
fn fernet_key(text: &str) -> Option<[u8; 32]> {
    let text = text.trim_end_matches('=').replace('+', "-").replace('/', "_");
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// Reads a sealing key; `None` unless the text is base64 of exactly 32 bytes.
pub(crate) fn sealing_key(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

fn sealing_key_text(text: &str) -> Option<Secret> {
    secret_if(sealing_key(text).is_some(), text)
}

/// A base URL, without the slash at its end.
fn http_url(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))?;
    let host = rest.split('/').next().unwrap_or_default();
    let plain = !rest.contains(['?', '#']) && !rest.contains(char::is_whitespace);
    (plain && !host.is_empty()).then(|| text.trim_end_matches('/').to_owned())
}

/// As a base URL; the query of one that has one is kept as it is written, since wikis name their pages in it.
fn page_url(text: &str) -> Option<String> {
    let Some((page, query)) = text.split_once('?') else {
        return http_url(text);
    };
    let is_plain = !query.contains('#') && !query.contains(char::is_whitespace);
    (is_plain && http_url(page).is_some()).then(|| text.to_owned())
}

/// As it is written: where traces are looked at may take the id in its path, its query or its fragment.
fn trace_url(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"))?;
    let (host, place) = rest.split_once('/')?;
    let is_whole = !host.is_empty() && place.contains(TRACE) && !text.contains(char::is_whitespace);
    is_whole.then(|| text.to_owned())
}

/// As it is written: the provider's documents and tokens have to say the same, to the last slash.
fn issuer(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| {
        let rest = text.strip_prefix("http://")?;
        let host = rest.split('/').next()?;
        let host = match host.strip_prefix('[') {
            Some(bracketed) => bracketed.split(']').next()?,
            None => host.split(':').next()?,
        };
        let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
        is_here.then_some(rest)
    })?;
    let host = rest.split('/').next().unwrap_or_default();
    let plain = !rest.contains(['?', '#', '@']) && !rest.contains(char::is_whitespace);
    (plain && !host.is_empty()).then(|| text.to_owned())
}

fn word(text: &str) -> Option<String> {
    let visible = |byte: u8| byte.is_ascii_graphic();
    (!text.is_empty() && text.bytes().all(visible)).then(|| text.to_owned())
}

/// Scheme, host and port of a page, and nothing else: what a browser compares.
fn origin(text: &str) -> Option<String> {
    let url = http_url(text)?;
    let rest = url.split_once("://")?.1;
    let plain = rest
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-:[]".contains(&byte));
    plain.then_some(url)
}

/// A colour that can be read where `contrast`, of its luminance, says how it stands out.
fn colour(text: &str, contrast: fn(f64) -> f64) -> Option<String> {
    let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
    let part = |at: usize| {
        let value = f64::from(u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?) / 255.0;
        Some(if value <= 0.04045 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        })
    };
    let luminance = 0.2126 * part(0)? + 0.7152 * part(2)? + 0.0722 * part(4)?;
    (contrast(luminance) >= 4.5).then(|| text.to_lowercase())
}

/// A network, or a single address as the network of only that one.
fn network(text: &str) -> Option<IpNet> {
    let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse().ok().or_else(single)
}

/// A range of ports, or a single one.
fn ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (0 < first && first <= last).then_some(first..=last)
}

/// Absolute, since services start in whatever folder; whether it is there is seen when it is read.
fn absolute_folder(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    path.is_absolute().then_some(path)
}

fn is_smtp_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("smtp://")
        .or_else(|| text.strip_prefix("smtps://"));
    let Some(rest) = rest else { return false };
    let host = rest.rsplit('@').next().unwrap_or_default();
    !host.is_empty() && !host.starts_with([':', '/']) && !rest.contains(char::is_whitespace)
}

/// Only what no mailbox can be is refused here; the crate that sends the mail reads it thoroughly.
fn mailbox(text: &str) -> Option<String> {
    let address = text.trim().rsplit_once('<').map_or(text.trim(), |(_, address)| {
        address.strip_suffix('>').unwrap_or_default()
    });
    let (user, host) = address.split_once('@')?;
    let plain = !text.contains(char::is_control) && !address.contains(char::is_whitespace);
    (plain && !user.is_empty() && !host.is_empty()).then(|| text.trim().to_owned())
}
