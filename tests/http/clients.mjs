// Clients of other servers, from npm, against ours. Prints what each gave, as JSON.
import * as deepl from "deepl-node";
import translate from "translate";

const address = process.argv[2];
const found = {};

translate.engine = "libre";
translate.url = `${address}/translate`;
found.libre = await translate("Good morning.", { from: "en", to: "pt" });

const client = new deepl.DeepLClient("any", { serverUrl: address, maxRetries: 0 });
const both = await client.translateText(["Good morning.", "Hello."], null, "pt-BR");
found.deepl = both.map((each) => [each.text, each.detectedSourceLang, each.billedCharacters]);
found.sources = (await client.getSourceLanguages()).map((each) => each.code);
found.targets = (await client.getTargetLanguages()).map((each) => each.code);
found.usage = (await client.getUsage()).character.count;
found.refused = await client.translateText("Hello.", null, "de").catch((error) => error.message);
console.log(JSON.stringify(found));
