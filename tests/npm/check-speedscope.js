// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `node check-speedscope.js NODE_MODULES FILE...`: whether each file is what speedscope's published schema describes.
// Says what is wrong on stderr, and ends with 1 then. Called by tests/unit/test_speedscope.c.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

const [modules, ...files] = process.argv.slice(2);
const Ajv = require(path.join(modules, 'ajv'));
const schema = path.join(modules, 'speedscope/dist/release/file-format-schema.json');
const validate = new Ajv({ strict: false }).compile(JSON.parse(fs.readFileSync(schema, 'utf8')));

// The schema knows nothing of what is between the parts of a file.
function checkReferences(file) {
    for (const profile of file.profiles) {
        if (profile.samples.length !== profile.weights.length)
            throw new Error(`${profile.name}: not a weight for each sample`);
        for (const frame of profile.samples.flat())
            if (!file.shared.frames[frame]) throw new Error(`${profile.name}: there is no frame ${frame}`);
        const sum = profile.weights.reduce((total, weight) => total + weight, 0);
        if (sum !== profile.endValue - profile.startValue)
            throw new Error(`${profile.name}: its weights come to ${sum}`);
    }
}

for (const name of files) {
    const file = JSON.parse(fs.readFileSync(name, 'utf8'));
    if (!validate(file)) throw new Error(`${name}: ${JSON.stringify(validate.errors)}`);
    checkReferences(file);
}
