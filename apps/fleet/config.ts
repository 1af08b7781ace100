import Type from 'typebox'
import { loadConfig, settings } from '../shared/config.ts'
import { OptionalText } from '../shared/contracts/shapes.ts'

export const schema = Type.Object({
  FLEET__LISTEN__HOST: settings.host(),
  FLEET__HTTP__PORT: settings.port(7181),
  FLEET__HOSTS__PORT_BASE: settings.integer("The first port of the demo's hosts.", 17_200, 1024, 60_000),
  FLEET__HOSTS__ADDRESS: OptionalText({
    description: 'The name under which others reach the hosts; by default the address they listen on.',
  }),
  FLEET__DATA__FILE: Type.String({
    default: '.signalbox/fleet.sqlite',
    description: "The SQLite file with the state of the demo's hosts.",
  }),
  FLEET__AUTH__TOKEN_FILE: OptionalText({
    description: 'The file with the value of the Authorization header that writes must carry.',
  }),
  FLEET__CATALOG__URL: settings.url('http://127.0.0.1:7142'),
  FLEET__SERVICE__KEY_FILE: Type.Optional(
    Type.String({ description: 'The Ed25519 key that signs reports to the catalog; without it none are sent.' }),
  ),
  FLEET__HEALTH__REPORT_S: settings.integer(
    "How often the demo's hosts report their health, in seconds; 0: never.",
    10,
    0,
    3600,
  ),
})

export const loadFleetConfig = () => loadConfig(schema)
