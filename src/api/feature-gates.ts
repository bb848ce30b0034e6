import { array, object, string } from './schema.ts'

/** Features switched on or off. */
export const featureGates = array(
  'Features switched on or off.',
  object('One feature.', {
    feature: string('Its name.', { minLength: 1, maxLength: 253 }),
    'mode?': string('On or off.', { enum: ['Enable', 'Disable'], default: 'Disable' }),
  }),
  { keys: ['feature'] },
)
