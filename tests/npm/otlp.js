// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decodes a request of OTLP with OpenTelemetry's own definitions, and prints it as OTLP's JSON:
// `node otlp.js MODULES traces|logs|metrics FILE`, where MODULES is a folder node_modules.
'use strict';

const fs = require('fs');
const path = require('path');

const [modules, signal, file] = process.argv.slice(2);
const root = require(path.join(modules, '@opentelemetry/otlp-transformer/build/src/generated/root.js'));
const collector = root.opentelemetry.proto.collector;
const types = {
    traces: collector.trace.v1.ExportTraceServiceRequest,
    logs: collector.logs.v1.ExportLogsServiceRequest,
    metrics: collector.metrics.v1.ExportMetricsServiceRequest,
};

// Ids are in hex there, other bytes in base64, and what is no number is a string.
function plain(key, value) {
    if (value instanceof Uint8Array)
        return Buffer.from(value).toString(/^(trace|span|parentSpan)Id$/.test(key) ? 'hex' : 'base64');
    if (typeof value === 'number' && !Number.isFinite(value))
        return String(value);
    if (Array.isArray(value))
        return value.map((each) => plain(key, each));
    if (value !== null && typeof value === 'object')
        return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(name, each)]));
    return value;
}

const message = types[signal].decode(fs.readFileSync(file));
console.log(JSON.stringify(plain('', types[signal].toObject(message, { longs: String }))));
