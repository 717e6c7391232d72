"""The numbers that pages speak of, from config/default.yaml. A page writes them as {{ name }}.

What it deliberately does not have: numbers that no configuration can change; pages write those themselves.
"""

from pathlib import Path

import yaml

# The factor between two retries and how far each is spread, as libs/domain/src/notification/retry.rs has them.
FACTOR = 4
UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def read(default_yaml: Path) -> dict[str, object]:
    """Every key of the configuration with its default: "reseller.retry.maxRetries" gives 3."""
    flat: dict[str, object] = {}

    def walk(prefix: str, part: dict[str, object]) -> None:
        for name, value in part.items():
            if isinstance(value, dict) and value:
                walk(f"{prefix}{name}.", value)
            else:
                flat[prefix + name] = value

    walk("", yaml.safe_load(default_yaml.read_text(encoding="utf-8")))
    return flat


def spoken(seconds: float) -> str:
    """A duration in the largest unit that fits: 120 gives "2 minutes"."""
    for size, unit in UNITS:
        if seconds % size == 0:
            count = int(seconds // size)
            return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
    return f"{seconds:g} seconds"


def listed(parts: list[str]) -> str:
    """The parts with commas, and "and" before the last."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def word(count: int) -> str:
    """Small numbers in words."""
    return WORDS[count] if count < len(WORDS) else f"{count:,}"


def retry_delays(config: dict[str, object]) -> list[int]:
    """The waits before the retries, in seconds, before they are spread."""
    first = int(config["reseller.retry.initialDelayInSeconds"])
    longest = int(config["reseller.retry.maxDelayInSeconds"])
    return [
        min(first * FACTOR**turn, longest)
        for turn in range(int(config["reseller.retry.maxRetries"]))
    ]


def figures(default_yaml: Path) -> dict[str, str]:
    """What pages may write between double braces."""
    config = read(default_yaml)

    def of(key: str) -> int:
        return int(config[f"reseller.{key}"])

    return {
        "retries": word(of("retry.maxRetries")),
        "attempts": word(of("retry.maxRetries") + 1),
        "retry_delays": listed([spoken(delay) for delay in retry_delays(config)]),
        "first_retry": spoken(retry_delays(config)[0]),
        "all_retries": spoken(round(sum(retry_delays(config)) / 60) * 60),
        "longest_retry_after": spoken(of("retry.maxRetryAfterInSeconds")),
        "ports": listed([str(ports).replace("-", " to ") for ports in config["reseller.egress.allowPorts"]]),
        "timeout": spoken(of("delivery.timeoutMillis") / 1000),
        "timeout_millis": str(of("delivery.timeoutMillis")),
        "longest_timeout": spoken(of("delivery.maxTimeoutMillis") / 1000),
        "longest_timeout_millis": str(of("delivery.maxTimeoutMillis")),
        "answer_bytes": f"{of('delivery.responseBodyBytes'):,}",
        "longest_wait": spoken(of("delivery.maxAgeInDays") * 86400),
        "in_flight": str(of("delivery.maxInFlightPerSubscription")),
        "subscriptions": word(of("subscription.maximum")),
        "daily_quota": f"{of('subscription.dailyQuota'):,}",
        "release_window": spoken(of("quota.releaseWindowInMinutes") * 60),
        "zone": str(config["reseller.quota.timeZone"]),
        "degraded_after": spoken(of("health.degradedAfterInHours") * 3600),
        "deactivated_after": spoken(of("health.deactivatedAfterInHours") * 3600),
        "evidence_after": spoken(of("health.evidenceAfterInHours") * 3600),
        "challenges": word(of("verification.maxAttempts")),
        "challenge_delay": spoken(of("verification.retryDelayInSeconds")),
        "overlap": spoken(of("secrets.overlapInHours") * 3600),
        "replay_reach": spoken(of("replay.maxAgeInDays") * 86400),
        "replay_rate": str(of("replay.perSecond")),
        # A quarter, rounded up, as domain::subscription::RECOVERY_PARTS has it.
        "recovery_rate": str(-(-of("replay.perSecond") // 4)),
        "after_outage": f"`{str(config['reseller.replay.afterOutage']).lower()}`",
        "data_bytes": f"{of('event.maxDataBytes'):,}",
        "request_bytes": f"{int(config['portal.maxBodyBytes']):,}",
    }
