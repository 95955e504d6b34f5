// Plays a debug session with the client that VS Code's maintainers test debug adapters with.
//
//   node client.js FOLDER < SESSION
//
// FOLDER has the package. SESSION is JSON: `adapter` (a program, and the file it runs), `type`, `configuration` (what an
// editor passes on of its launch configuration), `breakpoints` (functions), and `steps`: {request, arguments, stops}.
// Prints JSON: the capabilities, and what came of each step: the response's body, and where stops are awaited the reason,
// the innermost frame and what was printed since the step before.
"use strict";
const { createRequire } = require("module");
const { readFileSync } = require("fs");
const PATIENCE = 60000;

const [folder] = process.argv.slice(2);
const { DebugClient } = createRequire(`${folder}/`)("@vscode/debugadapter-testsupport");
const session = JSON.parse(readFileSync(0, "utf8"));

const stops = [];
const waiting = [];
let printed = "";

function nextStop() {
    return stops.length ? Promise.resolve(stops.shift()) : new Promise((resolve) => waiting.push(resolve));
}

async function played(client, step) {
    const response = step.request ? await client.send(step.request, step.arguments) : {};
    const outcome = { body: response.body };
    if (step.stops) {
        const { reason, threadId } = (await nextStop()).body;
        const trace = await client.stackTraceRequest({ threadId, startFrame: 0, levels: 1 });
        Object.assign(outcome, { reason, frame: trace.body.stackFrames[0] });
    }
    Object.assign(outcome, { printed });
    printed = "";
    return outcome;
}

async function main() {
    const client = new DebugClient(...session.adapter, session.type);
    client.defaultTimeout = PATIENCE;
    client.on("stopped", (event) => (waiting.length ? waiting.shift()(event) : stops.push(event)));
    client.on("output", (event) => (printed += event.body.output));
    await client.start();
    const initialized = client.waitForEvent("initialized", PATIENCE);
    const { body } = await client.initializeRequest();
    const attached = client.attachRequest(session.configuration);
    await Promise.race([initialized, attached.then(() => initialized)]);
    await client.setFunctionBreakpointsRequest({ breakpoints: session.breakpoints.map((name) => ({ name })) });
    await client.configurationDoneRequest();
    await attached;
    const outcomes = [];
    for (const step of session.steps) outcomes.push(await played(client, step));
    console.log(JSON.stringify({ capabilities: body, outcomes }));
    await client.disconnectRequest({ terminateDebuggee: false });
    await client.stop();
}

main().then(
    () => process.exit(0),
    (error) => {
        console.error(`${error && error.message}\n${printed}`);
        process.exit(1);
    },
);
