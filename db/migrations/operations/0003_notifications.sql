CREATE TABLE "operations"."notify_deliveries" (
	"delivery_id" uuid PRIMARY KEY NOT NULL,
	"destination_id" uuid NOT NULL,
	"owner" text NOT NULL,
	"purpose" text NOT NULL,
	"state" text DEFAULT 'queued' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"last_error" text,
	"next_at" timestamp with time zone NOT NULL,
	"leased_until" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "operations"."notify_destinations" (
	"destination_id" uuid PRIMARY KEY NOT NULL,
	"owner" text NOT NULL,
	"kind" text NOT NULL,
	"name" text NOT NULL,
	"address" "bytea" NOT NULL,
	"shown" text NOT NULL,
	"secret" "bytea",
	"status" text NOT NULL,
	"status_reason" text,
	"tries" integer DEFAULT 0 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operations"."notify_notices" (
	"destination_id" uuid NOT NULL,
	"operation_id" uuid NOT NULL,
	"object" text NOT NULL,
	"round" integer NOT NULL,
	"escalation" integer NOT NULL,
	"delivery_id" uuid NOT NULL,
	"event" text NOT NULL,
	"urgent" boolean NOT NULL,
	CONSTRAINT "notify_notices_destination_id_operation_id_object_round_escalation_pk" PRIMARY KEY("destination_id","operation_id","object","round","escalation")
);
--> statement-breakpoint
CREATE TABLE "operations"."notify_rules" (
	"owner" text PRIMARY KEY NOT NULL,
	"rules" jsonb NOT NULL,
	"looked_at" timestamp with time zone,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE INDEX "notify_deliveries_due" ON "operations"."notify_deliveries" USING btree ("next_at") WHERE state = 'queued';--> statement-breakpoint
CREATE INDEX "notify_deliveries_owner_created_at_delivery_id_index" ON "operations"."notify_deliveries" USING btree ("owner","created_at","delivery_id");--> statement-breakpoint
CREATE INDEX "notify_deliveries_destination_id_created_at_index" ON "operations"."notify_deliveries" USING btree ("destination_id","created_at");--> statement-breakpoint
CREATE INDEX "notify_destinations_owner_index" ON "operations"."notify_destinations" USING btree ("owner");--> statement-breakpoint
CREATE INDEX "notify_notices_delivery_id_index" ON "operations"."notify_notices" USING btree ("delivery_id");--> statement-breakpoint
CREATE INDEX "notify_rules_looked_at_index" ON "operations"."notify_rules" USING btree ("looked_at");