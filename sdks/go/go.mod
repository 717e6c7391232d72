module postrider.dev/webhooks

go 1.19
