"""What samples hold where their fields, each with its own example, would contradict one another."""

TIME = "2026-11-20T00:00:00Z"
FAILURE = "503 Service Unavailable"

# By type, wherever it is shown.
TYPES: dict[str, dict[str, object]] = {
    "Subscription": {
        "emailConfirmedAt": TIME,
        "retryClientErrors": False,
        "state": "ACTIVE",
        "stateReason": "VERIFIED",
    },
    "Verification": {"verifiedAt": TIME},
    "NotificationRow": {
        "attempts": 1,
        "end": None,
        "nextAttemptAt": "2026-11-20T00:00:31Z",
        "pausedBy": None,
        "reason": "delivery/http/503/json",
        "status": "RETRY",
    },
    "Attempt": {"error": FAILURE, "millis": 42, "status": "ERROR"},
    "LastAttempt": {"error": FAILURE, "millis": 42},
    "EndpointCheck": {"millis": 184, "passed": False},
    "EndpointCheckStep": {
        "mend": "see that the certificate is for this host, has not expired, and is sent with its intermediate certificates",
    },
    "Failures": {"atLeast": False, "total": 1200},
    "Cancellation": {"dryRun": False, "more": False, "oldest": TIME},
    "Resends": {"count": 42, "dryRun": False, "seconds": 1},
    "Replay": {"cancelledBy": None},
}

# By operation, whose answer tells what it has just done.
OPERATIONS: dict[str, dict[str, object]] = {
    "createSubscription": {
        "emailConfirmedAt": None,
        "state": "PENDING_VERIFICATION",
        "stateReason": "CREATED",
    },
    "verifySubscription": {
        "state": "PENDING_VERIFICATION",
        "stateReason": "VERIFICATION_REQUESTED",
    },
    "deactivateSubscription": {"state": "DEACTIVATED", "stateReason": "BY_RESELLER"},
    "pauseSubscription": {"pausedAt": TIME},
    "resendNotification": {"reason": "RESENT", "status": "PENDING", "nextAttemptAt": None},
    "cancelNotification": {
        "end": "Cancelled: it is not sent any more.",
        "finishedAt": TIME,
        "nextAttemptAt": None,
        "reason": "CANCELLED",
        "status": "GIVEN_UP",
    },
    # As the requests beside them ask for it.
    "resendNotifications": {"perSecond": 10, "seconds": 5},
    "createReplay": {"eventTypes": ["domain.created"], "statuses": ["FAILED", "GIVEN_UP"]},
}
