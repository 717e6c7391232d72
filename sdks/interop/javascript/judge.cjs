// Asks the npm package standardwebhooks, an implementation that shares nothing with ours.
//
// Reads one JSON object per line and answers each with one line of JSON. {"sign": …} is answered with a signature, {"verify": …}
// with "ok" or with what the package says against it. A message is accepted when one of the secrets is. NODE_PATH says where the
// package is.
"use strict";

const readline = require("node:readline");
const { Webhook } = require("standardwebhooks");

const realNow = Date.now;

function sign({ secret, id, timestamp, body }) {
  return new Webhook(secret).sign(id, new Date(timestamp * 1000), body);
}

function verify({ secrets, headers, body, now }) {
  // A clock that stands still, so that recorded messages can be judged as of their own time.
  Date.now = now === undefined ? realNow : () => now * 1000;
  let verdict = "no secret";
  for (const secret of secrets) {
    try {
      new Webhook(secret).verify(body, headers);
      return "ok";
    } catch (error) {
      // The package parses what it has accepted.
      if (error instanceof SyntaxError) return "ok";
      verdict = `${error.constructor.name}: ${error.message}`;
    }
  }
  return verdict;
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const question = JSON.parse(line);
  console.log(JSON.stringify(question.sign ? sign(question.sign) : verify(question.verify)));
});
