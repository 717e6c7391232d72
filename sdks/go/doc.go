// Package webhooks receives the notifications that Postrider sends: it checks who signed them, reads them, and helps to
// process each of them once and in a useful order.
//
// A Verifier turns the headers and the body of a request into a Notification, or into an error that says why it is not to be
// believed. ProcessOnce keeps a notification that comes again from being worked on again. Newest and Reorderer deal with
// notifications that come in another order than things happened. Sign and SignedHeaders are for tests of your own.
//
// Signatures are those of Standard Webhooks, symmetric, version v1. The package imports nothing but the standard library. It
// deliberately opens no connection, starts no goroutine, reads no file and logs nothing: these are the caller's part.
package webhooks
