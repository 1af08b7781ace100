import Type from 'typebox'
import { loadConfig, settings } from '../shared/config.ts'
import { OptionalText } from '../shared/contracts/shapes.ts'

export const schema = Type.Object({
  FLEET__LISTEN__HOST: settings.host(),
  FLEET__HTTP__PORT: settings.port(7181),
  FLEET__HOSTS__PORT_BASE: settings.integer(17_200, 1024, 60_000),
  FLEET__HOSTS__ADDRESS: OptionalText({
    description: 'The name under which others reach the hosts; by default the address they listen on.',
  }),
  FLEET__DATA__FILE: Type.String({ default: '.signalbox/fleet.sqlite' }),
  FLEET__AUTH__TOKEN_FILE: OptionalText({
    description: 'The file with the value of the Authorization header that writes must carry.',
  }),
  FLEET__CATALOG__URL: settings.url('http://127.0.0.1:7142'),
  FLEET__SERVICE__KEY_FILE: Type.Optional(Type.String()),
  FLEET__HEALTH__REPORT_S: settings.integer(10, 0, 3600),
})

export const loadFleetConfig = () => loadConfig(schema)
