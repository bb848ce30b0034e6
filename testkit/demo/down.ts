/** `make demo-down`: ends the demo, and removes what it left. */
import { endDemo } from './end.ts'
import { demoPlace } from './place.ts'

console.log((await endDemo(demoPlace())) ? 'the demo has ended' : 'no demo was running')
