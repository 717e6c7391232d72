module postrider.dev/webhooks/examples

go 1.19

require postrider.dev/webhooks v0.0.0

// In a project of yours leave this line away.
replace postrider.dev/webhooks => ../../go
